import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { build } from "./build.ts";
import { type Case, casesOf } from "./cases.ts";
import { curl } from "./curl.ts";
import { type OpenApi, operationsOf } from "./document.ts";
import type { Finding } from "./finding.ts";
import { type Answer, type Request, Sender, type Silence } from "./http.ts";
import { Judge } from "./judge.ts";
import { Pool } from "./pool.ts";
import { afterwards, rssMib } from "./processes.ts";
import type { Target } from "./target.ts";
import { attack } from "./wire.ts";

export interface FuzzOptions {
  seed: number;
  /** Requests, beside those that make a failing one smaller. */
  runs: number;
  /** Sequences of requests that run beside each other. */
  workers: number;
}

export interface FuzzReport {
  requests: number;
  /** Requests that fit, by operation: how many, and how many of them were answered with a success. */
  good: Map<string, { sent: number; done: number }>;
  statuses: Map<number, number>;
  /** Answers 502, 503 and 504, of which each was asked for again. */
  stalls: number;
  findings: Finding[];
  /** MiB that each process held, by its name, before and behind. */
  memory: Map<string, [number, number]>;
}

/** How many requests may be spent on making one that failed smaller. */
const SHRINKS = 150;
/** Until a request that a stalled machine did not get through is sent again. */
const STALL_MS = 2_000;
/** After that many findings the others are left for the next run. */
const MOST_FINDINGS = 25;

/** Sends good and bad requests of every operation, and holds each answer against the program's own document. */
export async function fuzz(target: Target, options: FuzzOptions): Promise<FuzzReport> {
  const document = (await (await fetch(`${target.url}/openapi.json`)).json()) as OpenApi;
  const run = new Run(target, document);
  const before = await Promise.all(target.processes.map(({ pid }) => rssMib(pid)));
  try {
    await run.furnish();
    const each = Math.ceil(options.runs / options.workers);
    const workers = Array.from({ length: options.workers }, (_, i) =>
      run.work((options.seed * 1_000 + i) | 0, each),
    );
    await Promise.all(workers);
    run.findings.push(...(await attack(target.url, target.apiKey)));
    run.findings.push(...(await afterwards(target)));
  } finally {
    run.sender.close();
  }
  const behind = await Promise.all(target.processes.map(({ pid }) => rssMib(pid)));
  const memory = target.processes.map(
    ({ name }, i) => [name, [before[i] ?? 0, behind[i] ?? 0]] as [string, [number, number]],
  );
  return { ...run, memory: new Map(memory) };
}

class Run {
  readonly sender: Sender;
  readonly findings: Finding[] = [];
  readonly good = new Map<string, { sent: number; done: number }>();
  readonly statuses = new Map<number, number>();
  requests = 0;
  stalls = 0;
  readonly #apiKey: string;
  readonly #url: string;
  readonly #pool = new Pool();
  readonly #judge: Judge;
  readonly #cases: fc.Arbitrary<Case>;
  readonly #found = new Set<string>();

  constructor({ url, apiKey }: Target, document: OpenApi) {
    this.sender = new Sender(url);
    this.#url = url;
    this.#apiKey = apiKey;
    this.#judge = new Judge(document);
    this.#cases = casesOf(document, operationsOf(document));
  }

  /** So that the first requests have something to be about. */
  async furnish(): Promise<void> {
    for (let i = 0; i < 3; i++) {
      await this.#create("createSandbox", "/v1/sandboxes", {
        image: { type: "oci", reference: "alpine" },
      });
      await this.#create("createVolume", "/v1/volumes", { name: `kept-${i}` });
    }
  }

  /** One sequence of requests: what fails is made smaller, told, and then passed over. */
  async work(seed: number, runs: number): Promise<void> {
    let done = 0;
    while (done < runs && this.findings.length < MOST_FINDINGS) {
      const attempt = new Attempt();
      const property = fc.asyncProperty(this.#cases, (given) => this.#holds(given, attempt));
      const result = await fc.check(property, { seed: (seed + done) | 0, numRuns: runs - done });
      done += result.numRuns;
      if (!result.failed) return;
      if (!attempt.finding) throw result.errorInstance ?? new Error("a request could not be made");
      this.findings.push(attempt.finding);
    }
  }

  /** Sends it; whether nothing is wrong that is to be told now. */
  async #holds(given: Case, attempt: Attempt): Promise<boolean> {
    if (attempt.shrinks > SHRINKS) return true;
    const built = build(given, this.#pool, this.#apiKey);
    const answer = await this.#send(built.request);
    this.requests += 1;
    this.#count(given, built.isGood, answer);
    if (
      "status" in answer &&
      answer.status === 200 &&
      built.isRouted &&
      built.request.method !== "HEAD"
    )
      this.#pool.learn(given.operation.id, built.request, answer);
    await this.#tidy();
    const fault = this.#judge.faultOf(given, built, answer);
    const signature = fault && `${given.operation.id}: ${fault}`;
    if (attempt.signature !== undefined) {
      attempt.shrinks += 1;
      if (signature !== attempt.signature) return true;
    } else if (!signature || this.#found.has(signature)) return true;
    attempt.signature = signature;
    this.#found.add(signature as string);
    attempt.finding = {
      operation: given.operation.id,
      fault: fault as string,
      curl: curl(this.#url, built.request),
      answer: JSON.stringify(answer).slice(0, 1_500),
    };
    return false;
  }

  /** What did not get through in time may try again, as any client would: a machine that stalls is no fault of ours. */
  async #send(request: Request): Promise<Answer | Silence> {
    const answer = await this.sender.send(request);
    const late = "status" in answer && [502, 503, 504].includes(answer.status);
    if (!late) return answer;
    this.stalls += 1;
    await sleep(STALL_MS);
    return this.sender.send(request);
  }

  #count({ operation }: Case, isGood: boolean, answer: Answer | Silence): void {
    const status = "status" in answer ? answer.status : 0;
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
    if (!isGood) return;
    const counts = this.good.get(operation.id) ?? { sent: 0, done: 0 };
    counts.sent += 1;
    if (status >= 200 && status < 300) counts.done += 1;
    this.good.set(operation.id, counts);
  }

  /** Deletes what has become too much, the oldest first. */
  async #tidy(): Promise<void> {
    const { sandboxes, volumes } = this.#pool.surplus();
    const targets = [
      ...sandboxes.map((id) => [id, `/v1/sandboxes/${id}`] as const),
      ...volumes.map((id) => [id, `/v1/volumes/${id}`] as const),
    ];
    for (const [id, target] of targets) {
      this.#pool.forget(id);
      await this.sender.send(this.#plain("DELETE", target));
    }
  }

  async #create(operation: string, target: string, body: object): Promise<void> {
    const request = this.#plain("POST", target, body);
    const answer = await this.sender.send(request);
    if (!("status" in answer) || answer.status !== 200)
      throw new Error(`${operation}: ${JSON.stringify(answer)}`);
    this.#pool.learn(operation, request, answer);
  }

  #plain(method: string, target: string, body?: object): Request {
    const headers: Record<string, string> = { Authorization: `Bearer ${this.#apiKey}` };
    if (body) headers["Content-Type"] = "application/json";
    const bytes = body && Buffer.from(JSON.stringify(body));
    return { method, target, query: "", headers, body: bytes, about: undefined };
  }
}

/** A fault that is being made smaller. */
class Attempt {
  signature: string | undefined;
  finding: Finding | undefined;
  shrinks = 0;
}
