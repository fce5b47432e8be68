import { Code, ConnectError } from "@connectrpc/connect";
import type { Caller } from "../../../runtime/caller.ts";
import { type Reason, ServiceError } from "../../../runtime/errors.ts";

interface Record {
  sha256: string;
  outcome: { response: object } | { refusal: ServiceError };
  answer: Uint8Array<ArrayBuffer>;
}

/** Refusals that say nothing of what there is. */
const FORGOTTEN: readonly Reason[] = [
  "INVALID_REQUEST",
  "INVALID_SANDBOX_CONFIG",
  "ORCHESTRATOR_UNREACHABLE",
  "SERVICE_UNAVAILABLE",
];

/** What requests with an idempotency key did, as the services have it on record. */
export class FakeIdempotency {
  readonly records = new Map<string, Record>();
  /** Every answer that was to be kept, by key, as JSON. */
  readonly kept: [key: string, answer: unknown][] = [];
  /** Whether answers cannot be kept. */
  broken = false;
  readonly #turns = new Map<string, Promise<unknown>>();

  /** Does what was not done yet, one after the other; what was is answered again. */
  once(caller: Caller, act: () => unknown): unknown {
    const { idempotency, orgId } = caller;
    if (!idempotency) return act();
    const id = `${orgId} ${idempotency.key}`;
    const sha256 = Buffer.from(idempotency.requestSha256).toString("hex");
    const turn = (this.#turns.get(id) ?? Promise.resolve()).then(() => this.#take(id, sha256, act));
    this.#turns.set(
      id,
      turn.catch(() => undefined),
    );
    return turn;
  }

  /** The first answer stays. */
  keepAnswer(orgId: string, key: string, answer: Uint8Array): { answer: Uint8Array<ArrayBuffer> } {
    this.kept.push([key, JSON.parse(Buffer.from(answer).toString())]);
    if (this.broken) throw new ConnectError("away", Code.Unavailable);
    const record = this.records.get(`${orgId} ${key}`);
    if (!record) throw new ServiceError("IDEMPOTENCY_KEY_UNKNOWN", "no such effect");
    if (record.answer.length === 0) record.answer = Uint8Array.from(answer);
    return { answer: record.answer };
  }

  async #take(id: string, sha256: string, act: () => unknown): Promise<object> {
    const record = this.records.get(id);
    if (!record) return this.#first(id, sha256, act);
    if (record.sha256 !== sha256)
      throw new ServiceError("IDEMPOTENCY_KEY_REUSED", "another request");
    if ("refusal" in record.outcome) throw again(record.outcome.refusal);
    return { ...record.outcome.response, replay: { answer: record.answer } };
  }

  async #first(id: string, sha256: string, act: () => unknown): Promise<object> {
    const answer = new Uint8Array();
    try {
      const response = (await act()) as object;
      this.records.set(id, { sha256, outcome: { response }, answer });
      return response;
    } catch (refusal) {
      if (refusal instanceof ServiceError && !FORGOTTEN.includes(refusal.reason))
        this.records.set(id, { sha256, outcome: { refusal }, answer });
      throw refusal;
    }
  }
}

function again({ reason, message, metadata, faults }: ServiceError): ServiceError {
  return new ServiceError(reason, message, { metadata: { ...metadata, replayed: "true" }, faults });
}
