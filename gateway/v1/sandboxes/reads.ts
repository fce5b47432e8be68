import type { Client } from "@connectrpc/connect";
import type { Sandbox } from "../../../proto/gen/sandbox/v1/sandbox_pb.ts";
import type { SandboxService } from "../../../proto/gen/sandbox/v1/sandbox_service_pb.ts";
import type { SandboxSpec } from "../../../proto/gen/sandbox/v1/spec_pb.ts";
import type { Caller } from "../../../runtime/caller.ts";
import { Together } from "../../../runtime/together.ts";
import { sandboxNotFound } from "../../errors.ts";
import { callFor } from "../../http/rpc.ts";
import type { Key } from "./keys.ts";
import type { ListQuery } from "./schema/queries.ts";
import { SpecShelf } from "./spec-shelf.ts";
import { listMessage } from "./translate/request.ts";

/** As many as one request of the service takes. */
const MOST = 100;

interface Wanted {
  caller: Caller;
  key: Key;
}

interface WantedPage {
  caller: Caller;
  query: ListQuery;
}

/** The same object for all who share it. */
export interface SandboxesPage {
  readonly sandboxes: readonly Sandbox[];
  readonly nextPageToken: string | undefined;
}

/**
 * Reads sandboxes. What one organization asks for at the same moment is one call, for the first of them in logs and traces: sandboxes
 * of any keys, or one page. Specs that are known here are not sent again.
 */
export class SandboxReads {
  readonly #sandboxes: Client<typeof SandboxService>;
  readonly #timeoutMs: number;
  readonly #shelf = new SpecShelf();
  readonly #together = new Together<Wanted, Sandbox | undefined>({
    ask: (wanted) => this.#find(wanted),
    most: MOST,
  });
  readonly #pages = new Together<WantedPage, SandboxesPage>({
    ask: (wanted) => this.#page(wanted),
    most: Number.POSITIVE_INFINITY,
  });

  /** @param timeoutMs deadline of one call */
  constructor(sandboxes: Client<typeof SandboxService>, timeoutMs: number) {
    this.#sandboxes = sandboxes;
    this.#timeoutMs = timeoutMs;
  }

  /** @throws PublicError (sandbox_not_found); whatever else the call ends in */
  async get(caller: Caller, key: Key): Promise<Sandbox> {
    const found = await this.#together.ask(caller.orgId, { caller, key });
    if (!found) throw sandboxNotFound();
    return found;
  }

  list(caller: Caller, query: ListQuery): Promise<SandboxesPage> {
    return this.#pages.ask(`${caller.orgId} ${JSON.stringify(query)}`, { caller, query });
  }

  // All of them want the same.
  async #page(wanted: readonly WantedPage[]): Promise<SandboxesPage[]> {
    const [first] = wanted;
    if (!first) return [];
    const { caller, query } = first;
    const request = { ...listMessage(query), omitSpecs: true };
    const options = callFor(caller, this.#timeoutMs);
    const { sandboxes, nextPageToken } = await this.#sandboxes.listSandboxes(request, options);
    const specs = await this.#specsOf(caller, sandboxes);
    // One that has no spec any more was cleared away meanwhile.
    const whole = sandboxes.flatMap((sandbox) => {
      const spec = specs.get(sandbox.id);
      return sandbox.spec || spec ? [this.#shelf.complete(sandbox, spec)] : [];
    });
    return Array<SandboxesPage>(wanted.length).fill({ sandboxes: whole, nextPageToken });
  }

  async #specsOf(caller: Caller, sandboxes: readonly Sandbox[]): Promise<Map<string, SandboxSpec>> {
    const specs = this.#known(sandboxes.map(({ id }) => id));
    const ids = sandboxes.flatMap(({ id, spec }) => (spec || specs.has(id) ? [] : [id]));
    if (ids.length === 0) return specs;
    const asked = ids.map((value) => ({ caller, key: { case: "id" as const, value } }));
    for (const found of await this.#find(asked)) if (found?.spec) specs.set(found.id, found.spec);
    return specs;
  }

  async #find(wanted: readonly Wanted[]): Promise<(Sandbox | undefined)[]> {
    const [first] = wanted;
    if (!first) return [];
    const valuesOf = (kind: Key["case"]) => [
      ...new Set(wanted.flatMap(({ key }) => (key.case === kind ? [key.value] : []))),
    ];
    const [ids, names] = [valuesOf("id"), valuesOf("name")];
    const { orgId } = first.caller;
    const guessed = names.flatMap((name) => this.#shelf.guessId(orgId, name) ?? []);
    const known = this.#known([...ids, ...guessed]);
    const request = { ids, names, knownSpecs: [...known.keys()] };
    const options = callFor(first.caller, this.#timeoutMs);
    const { sandboxes } = await this.#sandboxes.batchGetSandboxes(request, options);
    const found = { id: new Map<string, Sandbox>(), name: new Map<string, Sandbox>() };
    for (const sandbox of sandboxes) {
      const whole = this.#shelf.complete(sandbox, known.get(sandbox.id));
      if (names.length > 0) this.#shelf.noteName(whole);
      found.id.set(whole.id, whole);
      found.name.set(whole.name, whole);
    }
    return wanted.map(({ key }) => found[key.case].get(key.value));
  }

  #known(ids: readonly string[]): Map<string, SandboxSpec> {
    const known = new Map<string, SandboxSpec>();
    for (const id of ids) {
      const spec = this.#shelf.get(id);
      if (spec) known.set(id, spec);
    }
    return known;
  }
}
