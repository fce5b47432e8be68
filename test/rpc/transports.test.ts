import { Code, ConnectError, createClient, createContextValues } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ErrorInfoSchema } from "../../proto/gen/google/rpc/error_details_pb.ts";
import { OrganizationService } from "../../proto/gen/organization/v1/organization_service_pb.ts";
import { SandboxService } from "../../proto/gen/sandbox/v1/sandbox_service_pb.ts";
import { type NetworkAction, NetworkDirection } from "../../proto/gen/sandbox/v1/spec_pb.ts";
import { OPERATOR } from "../../runtime/caller.ts";
import { ServiceError } from "../../runtime/errors.ts";
import { actorKey, actorOf, callerKey } from "../../runtime/rpc/context.ts";
import { fromConnectError } from "../../runtime/rpc/errors.ts";
import { SANDBOX_ID, SECRET } from "../support/fake-services.ts";
import { asCaller, CALLER, inProcessRig, type Rig, socketRig } from "./support.ts";

describe.each([
  ["in process", inProcessRig],
  ["through a socket", socketRig],
])("a call %s", (_, createRig: () => Promise<Rig>) => {
  let rig: Rig;
  beforeEach(async () => {
    rig = await createRig();
  });
  afterEach(() => rig.close());
  const sandboxes = () => createClient(SandboxService, rig.transport);

  test("is answered on behalf of its caller", async () => {
    const { sandbox } = await sandboxes().getSandbox(named("box"), asCaller());
    expect(sandbox).toMatchObject({ id: SANDBOX_ID, name: "box", orgId: CALLER.orgId });
    expect(rig.fake.calls[0]?.values.get(callerKey)).toEqual(CALLER);
  });

  test("without an organization is refused where one is needed", async () => {
    const error = await failure(sandboxes().getSandbox(named("box")));
    expect(error.code).toBe(Code.InvalidArgument);
    expect(error.rawMessage).toContain("needs an organization");
  });

  test("needs no organization where none is looked at", async () => {
    const organizations = createClient(OrganizationService, rig.transport);
    const answer = await organizations.authenticateKey({ keySha256: new Uint8Array(32) });
    expect(answer.apiKeyName).toBe("ci");
  });

  test("says who acts also where no organization is named", async () => {
    const organizations = createClient(OrganizationService, rig.transport);
    const keySha256 = new Uint8Array(32);
    const contextValues = createContextValues().set(actorKey, CALLER.actor);
    await organizations.authenticateKey({ keySha256 }, { contextValues });
    await organizations.authenticateKey({ keySha256 });
    await organizations.authenticateKey({ keySha256 }, asCaller());
    expect(rig.fake.calls.map(actorOf)).toEqual([CALLER.actor, OPERATOR, CALLER.actor]);
    expect(rig.fake.calls[0]?.values.get(callerKey)).toBeUndefined();
  });

  test("that is not implemented says so", async () => {
    const error = await failure(sandboxes().startSandbox(named("box"), asCaller()));
    expect(error.code).toBe(Code.Unimplemented);
  });

  test("fails with the reason, metadata and faults of a refusal", async () => {
    const request = { name: "taken", spec: { image: "alpine" } };
    const error = await failure(sandboxes().createSandbox(request, asCaller()));
    expect(error.code).toBe(Code.AlreadyExists);
    const refusal = fromConnectError(error);
    expect(refusal).toBeInstanceOf(ServiceError);
    expect(refusal).toMatchObject({
      reason: "NAME_ALREADY_EXISTS",
      message: "'name' already exists",
      metadata: { field: "name", sandbox_id: SANDBOX_ID },
      faults: [{ field: "name", message: "taken is taken" }],
    });
  });

  test("that breaks tells the client a request id and the log the cause", async () => {
    const error = await failure(sandboxes().getSandbox(named("broken"), asCaller()));
    expect(error.code).toBe(Code.Internal);
    expect(error.rawMessage).toBe("internal error");
    expect(error.cause).toBeUndefined();
    const [info] = error.findDetails(ErrorInfoSchema);
    expect(info).toMatchObject({ reason: "INTERNAL", metadata: { request_id: CALLER.requestId } });
    expect(fromConnectError(error)).toBeUndefined();
    expect(rig.log.entries).toEqual([
      [
        expect.objectContaining({
          err: expect.objectContaining({ message: SECRET }),
          request_id: CALLER.requestId,
          org_id: CALLER.orgId,
          rpc: "sandbox.v1.SandboxService/GetSandbox",
        }),
        "rpc failed",
      ],
    ]);
  });

  test("that does not fit is refused with every fault", async () => {
    // A number that this version of the contract does not know.
    const action = 99 as NetworkAction;
    const rule = { direction: NetworkDirection.EGRESS, destination: anywhere(), action };
    const spec = { image: "alpine", network: { policy: { rules: [rule] } } };
    const request = { name: "-", spec };
    const refusal = fromConnectError(await failure(sandboxes().createSandbox(request, asCaller())));
    expect(refusal?.reason).toBe("INVALID_REQUEST");
    expect(refusal?.faults.map(({ field }) => field)).toEqual([
      "name",
      "spec.network.policy.rules[0].action",
    ]);
    expect(refusal?.message).toBe(`invalid request: name: ${refusal?.faults[0]?.message}`);
    expect(rig.fake.calls).toEqual([]);
  });

  test("fails at its deadline, and its handler is told", async () => {
    const options = { ...asCaller(), timeoutMs: 100 };
    const error = await failure(sandboxes().getSandbox(named("slow"), options));
    expect(error.code).toBe(Code.DeadlineExceeded);
    const [handler] = rig.fake.calls;
    await handlerEnded(handler?.signal);
    expect(handler?.timeoutMs()).toBeLessThanOrEqual(100);
    expect(rig.log.entries).toEqual([]);
  });

  test.each([0, -1])("with a rest of %d ms is not begun", async (timeoutMs) => {
    const options = { ...asCaller(), timeoutMs };
    const error = await failure(sandboxes().getSandbox(named("box"), options));
    expect(error.code).toBe(Code.DeadlineExceeded);
    expect(rig.fake.calls).toEqual([]);
  });

  test("that its caller gives up is canceled, and its handler is told", async () => {
    const caller = new AbortController();
    const options = { ...asCaller(), signal: caller.signal };
    const call = failure(sandboxes().getSandbox(named("slow"), options));
    const signal = await begun(rig);
    caller.abort();
    expect((await call).code).toBe(Code.Canceled);
    await handlerEnded(signal);
    expect(rig.log.entries).toEqual([]);
  });

  test("that its caller had given up before is not begun", async () => {
    const options = { ...asCaller(), signal: AbortSignal.abort() };
    const error = await failure(sandboxes().getSandbox(named("box"), options));
    expect(error.code).toBe(Code.Canceled);
    expect(rig.fake.calls).toEqual([]);
  });

  test("tells its handler when it is over", async () => {
    await sandboxes().getSandbox(named("box"), asCaller());
    await handlerEnded(rig.fake.calls[0]?.signal);
  });

  test("streams until its caller gives up", async () => {
    const caller = new AbortController();
    const seen: number[] = [];
    const error = await failure(
      (async () => {
        const options = { signal: caller.signal };
        for await (const { event } of sandboxes().watchSandboxes({ cursor: "3" }, options)) {
          if (event.case === "change") seen.push(event.value.generation);
          if (seen.length === 3) caller.abort();
        }
      })(),
    );
    expect(error.code).toBe(Code.Canceled);
    expect(seen).toEqual([1, 2, 3]);
    await handlerEnded(rig.fake.calls[0]?.signal);
    expect(rig.log.entries).toEqual([]);
  });

  test("streams until its deadline", async () => {
    const stream = sandboxes().watchSandboxes({ cursor: "0" }, { timeoutMs: 100 });
    expect((await failure(drain(stream))).code).toBe(Code.DeadlineExceeded);
    await handlerEnded(rig.fake.calls[0]?.signal);
  });

  test("that breaks in its stream is as opaque", async () => {
    const error = await failure(drain(sandboxes().watchSandboxes({ cursor: "broken" })));
    expect(error.code).toBe(Code.Internal);
    expect(error.rawMessage).toBe("internal error");
    expect(rig.log.entries).toHaveLength(1);
  });
});

function named(value: string) {
  return { key: { key: { case: "name", value } } } as const;
}

function anywhere() {
  return { kind: { case: "any", value: {} } } as const;
}

async function failure(call: Promise<unknown>): Promise<ConnectError> {
  try {
    await call;
  } catch (error) {
    return ConnectError.from(error);
  }
  throw new Error("the call did not fail");
}

async function drain(stream: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of stream);
}

/** The signal of the first handler that runs. */
async function begun({ fake }: Rig): Promise<AbortSignal | undefined> {
  await expect.poll(() => fake.calls.length).toBe(1);
  return fake.calls[0]?.signal;
}

async function handlerEnded(signal: AbortSignal | undefined): Promise<void> {
  await expect.poll(() => signal?.aborted).toBe(true);
}
