import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { serverEvents } from "../../support/events.ts";
import { pathHeader } from "../../support/files.ts";
import { image } from "../../support/program.ts";
import type { Send } from "./calls.ts";

const PAUSE_MS = 250;
const FILE_BYTES = 512 * 1024;

/** What clients do until they are told to stop, and what went wrong of it. */
export interface Work {
  signal: AbortSignal;
  /** How many times each has done all that it does. */
  rounds: Map<string, number>;
  errors: string[];
}

/** Does one round after the other; whatever is thrown is an error that a user would have seen. */
export async function repeat(
  name: string,
  work: Work,
  round: (number: number) => Promise<void>,
): Promise<void> {
  for (let number = 1; !work.signal.aborted; number += 1) {
    try {
      await round(number);
      work.rounds.set(name, number);
    } catch (error) {
      const cause = error instanceof Error && error.cause ? ` (${error.cause})` : "";
      work.errors.push(`${new Date().toISOString()} ${name}, round ${number}: ${error}${cause}`);
    }
    await sleep(PAUSE_MS);
  }
}

/** The life of a sandbox, with two waits. */
export function lives(name: string, send: Send) {
  const ask = asking(send);
  return async (number: number) => {
    const id = `${name}-${number}`;
    const wait = "wait_for=running&wait_timeout=60";
    const made = await ask("POST", `/v1/sandboxes?start=true&${wait}`, { ...image(), name: id });
    expectStatus(made, "running");
    const path = `/v1/sandboxes/${made.id}`;
    await ask("GET", "/v1/sandboxes?limit=20");
    await ask("PATCH", path, { name: `${id}-renamed` });
    await ask("POST", `${path}/stop`, {});
    while ((await ask("GET", path)).status !== "stopped") await sleep(PAUSE_MS);
    expectStatus(await ask("POST", `${path}/start?${wait}`, {}), "running");
    await ask("DELETE", path);
  };
}

/** A file in and out, and what is in its directory. */
export async function files(name: string, send: Send) {
  const ask = asking(send);
  const { id } = await ask("POST", "/v1/volumes", { name });
  const path = `/v1/volumes/${id}/files`;
  return async (number: number) => {
    const content = randomBytes(FILE_BYTES);
    const headers = pathHeader(`/file-${number}`);
    const put = await send("PUT", `${path}/content`, content, headers);
    if (put.status >= 300) throw new Error(`the upload: ${put.status} ${put.body}`);
    const got = await send("GET", `${path}/content`, undefined, headers);
    if (got.status !== 200) throw new Error(`the download: ${got.status} ${got.body}`);
    if (!got.body.equals(content)) throw new Error("the file came back as another one");
    const listed = await send("GET", path, undefined, pathHeader("/"));
    if (listed.status !== 200) throw new Error(`the list: ${listed.status} ${listed.body}`);
  };
}

/** Follows the output of a sandbox, from where it was when a stream ends without the end of the run. */
export async function followers(name: string, send: Send, url: string, apiKey: string) {
  const ask = asking(send);
  const query = "start=true&wait_for=running&wait_timeout=60";
  const { id } = await ask("POST", `/v1/sandboxes?${query}`, { ...image(), name });
  let last: string | undefined;
  return async () => {
    const path = `/v1/sandboxes/${id}/logs?sources=all`;
    const resume: Record<string, string> = last === undefined ? {} : { "last-event-id": last };
    for await (const event of serverEvents({ url, apiKey }, path, resume)) {
      if (event.event === "end") throw new Error("the run ended");
      if (event.id === last) throw new Error("an event came twice");
      last = event.id;
    }
  };
}

// biome-ignore lint/suspicious/noExplicitAny: each says what it expects of an answer
type Json = any;

/** JSON in, JSON out, and an error where it is no success. */
function asking(send: Send) {
  return async (method: string, path: string, body?: unknown): Promise<Json> => {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const answer = await send(method, path, text).catch((error: unknown) => {
      throw new Error(`${method} ${path} got no answer`, { cause: error });
    });
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.body}`);
    return JSON.parse(String(answer.body));
  };
}

function expectStatus({ status }: { status: string }, wanted: string): void {
  if (status !== wanted) throw new Error(`a wait ended with ${status}`);
}
