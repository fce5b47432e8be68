import { create, type DescService, fromBinary, toBinary } from "@bufbuild/protobuf";
import { timestampFromDate, timestampMs } from "@bufbuild/protobuf/wkt";
import {
  Code,
  ConnectError,
  createClient,
  type HandlerContext,
  type ServiceImpl,
} from "@connectrpc/connect";
import { BillingService } from "../../../proto/gen/billing/v1/billing_service_pb.ts";
import { OrchestratorService } from "../../../proto/gen/orchestrator/v1/orchestrator_service_pb.ts";
import { VolumeFileService } from "../../../proto/gen/orchestrator/v1/volume_file_service_pb.ts";
import { OrganizationService } from "../../../proto/gen/organization/v1/organization_service_pb.ts";
import {
  type Sandbox,
  SandboxSchema,
  SandboxStatus,
} from "../../../proto/gen/sandbox/v1/sandbox_pb.ts";
import {
  type CreateSandboxRequest,
  type GetSandboxRequest,
  GetSandboxRequestSchema,
  type SandboxKey,
  SandboxService,
} from "../../../proto/gen/sandbox/v1/sandbox_service_pb.ts";
import { SandboxSpecSchema } from "../../../proto/gen/sandbox/v1/spec_pb.ts";
import { VolumeService } from "../../../proto/gen/sandbox/v1/volume_service_pb.ts";
import type { Caller } from "../../../runtime/caller.ts";
import { ServiceError } from "../../../runtime/errors.ts";
import { requireCaller } from "../../../runtime/rpc/context.ts";
import { createInProcessTransport } from "../../../runtime/rpc/in-process.ts";
import { FakeAccounts } from "./fake-accounts.ts";
import { FakeIdempotency } from "./fake-idempotency.ts";
import { FakeKeyWatch } from "./fake-key-watch.ts";
import { FakeWatch } from "./fake-watch.ts";

export const ORG_ID = "019a9f2d-11c4-7a0b-8e21-5d5b9a7c6e10";
export const KEY_ID = "019a9f2d-2b1e-7d40-9c3f-8a6e5f4d3c2b";
export const KEY = "test_0123456789abcdefghij";

type Organizations = ServiceImpl<typeof OrganizationService>;
type Sandboxes = ServiceImpl<typeof SandboxService>;
type Orchestrators = ServiceImpl<typeof OrchestratorService>;

/** The services in memory: enough of them to see what the gateway asks and what it makes of answers. */
export class FakeServices {
  /** Every call to the sandbox service but the watch, in order. */
  readonly calls: { method: string; request: unknown; caller: Caller }[] = [];
  readonly sandboxes = new Map<string, Sandbox>();
  readonly watch = new FakeWatch();
  readonly keyWatch = new FakeKeyWatch();
  /** What was told of the uses of keys, a call each: Unix milliseconds by key id. */
  readonly keyUses: Record<string, number>[] = [];
  /** Keys asked for, as hex of their SHA-256. */
  readonly keysAsked: string[] = [];
  /** Replace what a method does. */
  readonly organization: Partial<Organizations> = {};
  readonly sandbox: Partial<Sandboxes> = {};
  readonly orchestrator: Partial<Orchestrators> = {};
  readonly volumes: Partial<ServiceImpl<typeof VolumeService>> = {};
  readonly files: Partial<ServiceImpl<typeof VolumeFileService>> = {};
  readonly billing: Partial<ServiceImpl<typeof BillingService>> = {};
  readonly idempotency = new FakeIdempotency();
  readonly accounts = new FakeAccounts(this);

  clients() {
    const transport = createInProcessTransport(
      (router) => {
        const accounts = this.accounts.organizations();
        router.service(OrganizationService, { ...accounts, ...this.#organizations() });
        router.service(SandboxService, this.#sandboxes());
        router.service(OrchestratorService, this.#orchestrators());
        router.service(VolumeService, late(VolumeService, this.volumes));
        router.service(VolumeFileService, late(VolumeFileService, this.files));
        router.service(BillingService, this.accounts.billing());
      },
      // What services log is not looked at here.
      { log: { error: () => undefined }, freeze: true },
    );
    return {
      organizations: createClient(OrganizationService, transport),
      sandboxes: createClient(SandboxService, transport),
      orchestrators: createClient(OrchestratorService, transport),
      volumes: createClient(VolumeService, transport),
      files: createClient(VolumeFileService, transport),
      billing: createClient(BillingService, transport),
    };
  }

  /** Adds a sandbox; what is not given is filled in. */
  add(given: Partial<Sandbox> = {}): Sandbox {
    const index = this.sandboxes.size.toString(16).padStart(12, "0");
    const plain = create(SandboxSchema, {
      id: `019a9f2e-6f0a-7c3e-9b57-${index}`,
      orgId: ORG_ID,
      name: `sandbox-${index}`,
      slug: `slug-${index}`,
      status: SandboxStatus.CREATED,
      createdAt: timestampFromDate(new Date("2026-11-21T08:15:30.120Z")),
      spec: create(SandboxSpecSchema, { image: "alpine" }),
    });
    const sandbox = Object.assign(plain, given);
    this.sandboxes.set(sandbox.id, sandbox);
    return sandbox;
  }

  /** Changes a sandbox and, unless it is done quietly, tells the watchers. */
  change(id: string, change: Partial<Sandbox>, quietly = false): void {
    const before = this.sandboxes.get(id);
    if (!before) throw new Error("no such sandbox");
    const copy = fromBinary(SandboxSchema, toBinary(SandboxSchema, before));
    const after = Object.assign(copy, change);
    this.sandboxes.set(id, after);
    if (!quietly) this.watch.changed(id, after.status);
  }

  destroy(id: string): void {
    this.sandboxes.delete(id);
    this.watch.changed(id, SandboxStatus.RUNNING, true);
  }

  // Of a sandbox that never ran, where a test does not say otherwise.
  #orchestrators(): Orchestrators {
    const { orchestrator } = this;
    return {
      listEngines: async () => ({ engines: [] }),
      readLogs: async function* (request, context) {
        requireCaller(context);
        if (orchestrator.readLogs) return yield* orchestrator.readLogs(request, context);
        yield { event: { case: "opened" as const, value: {} } };
        yield { event: { case: "ended" as const, value: {} } };
      },
    };
  }

  #organizations(): Partial<Organizations> {
    return {
      authenticateKey: async ({ keySha256 }, context) => {
        this.keysAsked.push(Buffer.from(keySha256).toString("hex"));
        if (this.organization.authenticateKey)
          return this.organization.authenticateKey({ keySha256 } as never, context);
        return { orgId: ORG_ID, apiKeyId: KEY_ID, apiKeyName: "a key" };
      },
      watchKeys: (_request, { signal }) => this.keyWatch.stream(signal),
      recordKeyUse: async (request, context) => {
        const told = request.uses.map(({ apiKeyId, usedAt }) => [
          apiKeyId,
          usedAt && timestampMs(usedAt),
        ]);
        this.keyUses.push(Object.fromEntries(told));
        return this.organization.recordKeyUse?.(request, context) ?? {};
      },
      getOrganization: async (request, context) => {
        requireCaller(context);
        if (this.organization.getOrganization)
          return this.organization.getOrganization(request, context);
        const at = timestampFromDate(new Date("2026-11-21T08:14:02.004Z"));
        const organization = { id: ORG_ID, name: "Default", slug: "default", createdAt: at };
        return { organization: { ...organization, updatedAt: at } };
      },
    };
  }

  #sandboxes(): Sandboxes {
    return {
      createSandbox: this.#seen("createSandbox", async (request) => ({
        sandbox: this.#created(request),
      })),
      getSandbox: this.#getSandbox(),
      batchGetSandboxes: async ({ ids, names }, context) => ({
        sandboxes: await Promise.all([
          ...ids.map((value) => this.#readOne({ case: "id", value }, context)),
          ...names.map((value) => this.#readOne({ case: "name", value }, context)),
        ]).then((found) => found.flat()),
      }),
      listSandboxes: this.#seen("listSandboxes", async () => ({
        sandboxes: [...this.sandboxes.values()],
      })),
      renameSandbox: this.#seen("renameSandbox", async ({ key, name, slug }) => {
        const { id } = this.#find(key);
        this.change(id, { ...(name ? { name } : {}), ...(slug ? { slug } : {}) });
        return { sandbox: this.#find(key) };
      }),
      startSandbox: this.#seen("startSandbox", async ({ key }) => {
        this.change(this.#find(key).id, { status: SandboxStatus.STARTING });
        return { sandbox: this.#find(key) };
      }),
      stopSandbox: this.#seen("stopSandbox", async ({ key }) => {
        this.change(this.#find(key).id, { status: SandboxStatus.STOPPING });
        return { sandbox: this.#find(key) };
      }),
      destroySandbox: this.#seen("destroySandbox", async ({ key }) => {
        const { id, name } = this.#find(key);
        this.destroy(id);
        return { id, name };
      }),
      watchSandboxes: ({ cursor }, { signal }) => this.watch.open(cursor, signal),
      report: async () => ({ applied: false }),
    };
  }

  #getSandbox() {
    return this.#seen("getSandbox", async ({ key }: GetSandboxRequest, _: HandlerContext) => ({
      sandbox: this.#find(key),
    }));
  }

  /** A read of one, of several that were asked for together, as if it had been asked for alone. */
  async #readOne(key: SandboxKey["key"], context: HandlerContext): Promise<Sandbox[]> {
    try {
      const request = create(GetSandboxRequestSchema, { key: { key } });
      const { sandbox } = await this.#getSandbox()(request, context);
      return sandbox ? [sandbox] : [];
    } catch (error) {
      if (error instanceof ServiceError && error.reason === "SANDBOX_NOT_FOUND") return [];
      throw error;
    }
  }

  /** Notes the call, and lets a test answer in place of the fake; with an idempotency key it acts once. */
  #seen<M extends keyof Sandboxes, F extends Sandboxes[M]>(method: M, answer: F): F {
    const noted = (request: never, context: HandlerContext) => {
      const caller = requireCaller(context);
      this.calls.push({ method, request, caller });
      const act = (this.sandbox[method] ?? answer) as (r: never, c: HandlerContext) => unknown;
      return this.idempotency.once(caller, () => act(request, context));
    };
    return noted as F;
  }

  #created({ name, slug, spec, start }: CreateSandboxRequest): Sandbox {
    // As a service resolves and stores it: nothing is shared with the request.
    const own = spec && fromBinary(SandboxSpecSchema, toBinary(SandboxSpecSchema, spec));
    return this.add({
      ...(name ? { name } : {}),
      ...(slug ? { slug } : {}),
      ...(own ? { spec: own, ephemeral: own.lifecycle?.ephemeral ?? false } : {}),
      status: start ? SandboxStatus.STARTING : SandboxStatus.CREATED,
      generation: start ? 1 : 0,
    });
  }

  #find(key: SandboxKey | undefined): Sandbox {
    const found = [...this.sandboxes.values()].find(({ id, name }) =>
      key?.key.case === "id" ? id === key.key.value : name === key?.key.value,
    );
    if (!found) throw new ServiceError("SANDBOX_NOT_FOUND", "no such sandbox");
    return found;
  }
}

/** The methods that an implementation has when they are called. */
function late<S extends DescService>(
  { methods }: S,
  implementation: Partial<ServiceImpl<S>>,
): Partial<ServiceImpl<S>> {
  type Method = (...call: unknown[]) => unknown;
  const found = implementation as Record<string, Method | undefined>;
  const call =
    (name: string) =>
    (...args: unknown[]) => {
      const method = found[name];
      if (!method) throw new ConnectError(`${name} is not implemented`, Code.Unimplemented);
      return method(...args);
    };
  const all = methods.map(({ localName }) => [localName, call(localName)]);
  return Object.fromEntries(all);
}
