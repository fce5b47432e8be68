import { BODY } from "./spec.ts";

/** Makes a sandbox by the API. @throws Error where that is not answered with 200 */
export async function makeOne(
  port: number,
  apiKey: string,
  { query = "", body = BODY as object } = {},
): Promise<{ id: string; org_id: string; status: string }> {
  const answer = await fetch(`http://127.0.0.1:${port}/v1/sandboxes${query}`, {
    method: "POST",
    headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(`${answer.status} ${text}`);
  return JSON.parse(text);
}

/** Does something so often, so many at once. */
export async function many(
  count: number,
  atOnce: number,
  work: (at: number) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}
