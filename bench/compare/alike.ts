import type { Running } from "./contenders.ts";
import type { Stock } from "./database.ts";
import { BODY } from "./spec.ts";

type Place = "one" | "separate" | "pg" | "prisma";
const PLACES: Place[] = ["one", "separate", "pg", "prisma"];
const NO_SANDBOX = "01900000-0000-7000-8000-000000000000";

interface Question {
  path: string;
  key?: string;
  body?: object;
}

/** @throws Error where a contender answers otherwise than the program: status, type or a byte of the body */
export async function checkAlike(running: Running, stock: Stock): Promise<void> {
  const list = "/v1/sandboxes?limit=20";
  const { ids, names, wrongKey } = stock;
  const { next_cursor } = JSON.parse((await ask(running, stock, "one", { path: list })).body);
  const questions: Question[] = [
    ...ids.slice(0, 20).map((id) => ({ path: `/v1/sandboxes/${id}` })),
    ...names.slice(0, 20).map((name) => ({ path: `/v1/sandboxes/by-name/${name}` })),
    { path: list },
    { path: `${list}&cursor=${next_cursor}` },
    { path: `/v1/sandboxes/${NO_SANDBOX}` },
    { path: "/v1/sandboxes/by-name/nobody" },
    { path: `/v1/sandboxes/${ids[0]}`, key: wrongKey },
  ];
  for (const question of questions) await compare(running, stock, question);
  await compare(running, stock, { path: "/v1/sandboxes", body: BODY });
}

async function compare(running: Running, stock: Stock, question: Question): Promise<void> {
  const own = await ask(running, stock, "one", question);
  for (const place of PLACES) {
    const theirs = await ask(running, stock, place, question);
    for (const what of ["status", "type", "authenticate", "body"] as const)
      if (theirs[what] !== own[what])
        throw new Error(
          `${place} answers ${question.path} otherwise, ${what}:\n${own[what]}\n${theirs[what]}`,
        );
  }
}

async function ask(running: Running, stock: Stock, place: Place, { path, key, body }: Question) {
  const post = body && {
    method: "POST",
    body: JSON.stringify(body),
  };
  const answer = await fetch(`http://127.0.0.1:${running[place].port}${path}`, {
    headers: {
      authorization: `Bearer ${key ?? stock.apiKey}`,
      ...(post && { "content-type": "application/json" }),
    },
    ...post,
  });
  const text = await answer.text();
  return {
    status: answer.status,
    type: answer.headers.get("content-type"),
    authenticate: answer.headers.get("www-authenticate"),
    body: post ? withoutOwn(text) : text,
  };
}

/** Of a sandbox that was just made, what is no other's. */
function withoutOwn(text: string): string {
  return JSON.stringify({ ...JSON.parse(text), id: "", name: "", slug: "", created_at: "" });
}
