import { Agent, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

/** Well below what two cores can destroy: it is not the destroys that are measured. */
export const A_SECOND = 50;
const CONNECTIONS = 32;

/** A destroy: when it was sent and answered, by `performance.now()`. */
export interface Wake {
  name: string;
  sent: number;
  answered: number;
}

/** Destroys sandboxes by name, at a steady rate. @throws Error where one is not answered with 200 */
export async function destroyAll(port: number, apiKey: string, names: readonly string[]) {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  const began = performance.now();
  const wakes = names.map(async (name, at) => {
    const due = began + (at * 1_000) / A_SECOND;
    await sleep(Math.max(0, due - performance.now()));
    const sent = performance.now();
    const status = await destroy(agent, port, apiKey, name);
    if (status !== 200) throw new Error(`destroying ${name} was answered with ${status}`);
    return { name, sent, answered: performance.now() } satisfies Wake;
  });
  return Promise.all(wakes).finally(() => agent.destroy());
}

function destroy(agent: Agent, port: number, apiKey: string, name: string) {
  const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
  const path = `/v1/sandboxes/by-name/${name}`;
  const headers = { authorization: `Bearer ${apiKey}` };
  request({ agent, port, path, headers, host: "127.0.0.1", method: "DELETE" }, (answer) => {
    answer.resume();
    answer.once("end", () => resolve(answer.statusCode));
  })
    .once("error", reject)
    .end();
  return promise;
}
