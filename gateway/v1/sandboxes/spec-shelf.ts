import { LRUCache } from "lru-cache";
import type { Sandbox } from "../../../proto/gen/sandbox/v1/sandbox_pb.ts";
import type { SandboxSpec } from "../../../proto/gen/sandbox/v1/spec_pb.ts";
import { specText } from "./translate/sandbox.ts";

/** Characters of public JSON; what belongs to it takes some times as many bytes. */
const SPECS = 4 * 1024 * 1024;
const NAMES = 1024 * 1024;

/**
 * Specs of sandboxes, which never change: reads leave them out where they are here. They are most of what a sandbox weighs, on
 * every way that it takes.
 */
export class SpecShelf {
  readonly #specs = new LRUCache<string, SandboxSpec>({ maxSize: SPECS });
  /** Whose name it was when it was last read: a guess at whom to look up. */
  readonly #names = new LRUCache<string, string>({ maxSize: NAMES });

  get(id: string): SandboxSpec | undefined {
    return this.#specs.get(id);
  }

  guessId(orgId: string, name: string): string | undefined {
    return this.#names.get(`${orgId} ${name}`);
  }

  noteName({ orgId, name, id }: Sandbox): void {
    const key = `${orgId} ${name}`;
    if (this.#names.get(key) !== id) this.#names.set(key, id, { size: key.length + id.length });
  }

  /** The sandbox with its spec, which is kept for the next time. */
  complete(sandbox: Sandbox, known: SandboxSpec | undefined): Sandbox {
    const { id, spec } = sandbox;
    if (spec) {
      this.#specs.set(id, spec, { size: specText(spec).length });
      return sandbox;
    }
    if (!known) throw new Error("the answer holds a sandbox without a spec");
    return { ...sandbox, spec: known };
  }
}
