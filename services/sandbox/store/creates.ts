import { type Database, refusal } from "../../../prisma/database.ts";
import type { Actor } from "../../../runtime/caller.ts";
import { inCall } from "../../../runtime/current-call.ts";
import { ServiceError } from "../../../runtime/errors.ts";
import { Together } from "../../../runtime/together.ts";
import type { Memory } from "../domain/idempotency.ts";
import type { Sandbox } from "../domain/sandbox.ts";
import { type Asked, insertSandboxes, type NewSandbox, rowOf } from "./create.ts";

/** Most of one statement. */
const AT_ONCE = 8;
/** What is larger has a statement of its own. */
const LARGE_CHARS = 32 * 1024;
/** One of several was refused; which, each finds out by itself. */
const APART = Symbol("apart");

type Made = Sandbox | undefined | typeof APART;

/**
 * Makes sandboxes. Those of one organization wait for each other anyway, for each takes a place: those that come meanwhile
 * are one statement, and hold one connection.
 */
export class Creates {
  readonly #database: Database;
  readonly #together: Together<Asked, Made>;

  constructor(database: Database) {
    this.#database = database;
    this.#together = new Together({ ask: (asked) => this.#insertAll(asked), most: AT_ONCE });
  }

  /**
   * Makes a sandbox, admits its start where asked, takes its places and writes its events, all or nothing.
   * @returns undefined where the engine's lease, a quota or the lack of a volume refused it
   * @throws a unique violation of sandboxes_name_key or sandboxes_slug_key, or what `isOnRecord` knows
   */
  async create(make: NewSandbox, actor: Actor, memory?: Memory): Promise<Sandbox | undefined> {
    const asked = { make, row: rowOf(make, actor, memory) };
    const isAlone = make.volumes.length > 0 || asked.row.length > LARGE_CHARS;
    const made = isAlone ? APART : await this.#together.ask(make.orgId, asked);
    if (made !== APART) return made;
    const [one] = await insertSandboxes(this.#database, [asked], make.volumes);
    return one;
  }

  async #insertAll(asked: readonly Asked[]): Promise<Made[]> {
    // Whoever came first may be answered, and gone, when its successors' turn comes.
    const call = { owner: asked[0]?.make.orgId, signal: undefined };
    const apart: Made[] = asked.map(() => APART);
    try {
      const made = await inCall(call, () => insertSandboxes(this.#database, asked, []));
      return asked.length > 1 && made.includes(undefined) ? apart : made;
    } catch (error) {
      // What PostgreSQL refuses is undone; of a database that is away there is no telling.
      if (asked.length === 1 || error instanceof ServiceError || !refusal(error)) throw error;
      return apart;
    }
  }
}
