import type { Program } from "./program.ts";

/** One server-sent event. */
export interface ServerEvent {
  id: string | undefined;
  event: string | undefined;
  // What each event carries; a test says what it expects of it.
  // biome-ignore lint/suspicious/noExplicitAny: see above
  data: any;
}

/** Reads a program's stream of server-sent events as it comes; leaving the loop hangs up. */
export async function* serverEvents(
  program: Pick<Program, "url" | "apiKey">,
  path: string,
  headers: Record<string, string> = {},
): AsyncGenerator<ServerEvent> {
  const hangUp = new AbortController();
  const response = await fetch(program.url + path, {
    headers: { authorization: `Bearer ${program.apiKey}`, ...headers },
    signal: hangUp.signal,
  });
  if (response.status !== 200 || !response.body) throw new Error(await response.text());
  let rest = "";
  try {
    for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
      const blocks = (rest + text).split("\n\n");
      rest = blocks.pop() ?? "";
      yield* blocks.filter((block) => !block.startsWith(":")).map(parse);
    }
  } finally {
    hangUp.abort();
  }
}

/** All events that a stream has until it ends. */
export async function allEvents(...args: Parameters<typeof serverEvents>): Promise<ServerEvent[]> {
  const events: ServerEvent[] = [];
  for await (const event of serverEvents(...args)) events.push(event);
  return events;
}

function parse(block: string): ServerEvent {
  const fields = new Map(
    block.split("\n").map((line): [string, string] => {
      const at = line.indexOf(": ");
      return [line.slice(0, at), line.slice(at + 2)];
    }),
  );
  const data: unknown = JSON.parse(fields.get("data") ?? "null");
  return { id: fields.get("id"), event: fields.get("event"), data };
}
