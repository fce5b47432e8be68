import pino from "pino";
import { afterEach, expect, test } from "vitest";
import { healthPaths, startAdmin } from "../../app/admin.ts";
import { Needs } from "../../app/readiness.ts";
import { readConfig } from "../../runtime/env.ts";
import { StartupError } from "../../runtime/errors.ts";
import { Lifecycle } from "../../runtime/lifecycle.ts";

const log = pino({ level: "silent" });
let lifecycle = new Lifecycle(log);

afterEach(async () => {
  await lifecycle.stop(1_000);
  lifecycle = new Lifecycle(log);
});

async function open(needs: Needs, env: Record<string, string> = {}): Promise<string> {
  const config = readConfig({ ADMIN_PORT: "0", ...env });
  const url = await startAdmin({ config, log, lifecycle }, [healthPaths(needs)]);
  if (url === undefined) throw new Error("it is off");
  return url;
}

async function ask(url: string): Promise<{ status: number; body: { checks: object } }> {
  const answer = await fetch(`${url}/readyz`);
  return { status: answer.status, body: (await answer.json()) as { checks: object } };
}

test("it says what is missing, and what has come", async () => {
  const needs = new Needs(lifecycle);
  needs.expect("database", "schema");
  const url = await open(needs);
  expect(await (await fetch(`${url}/healthz`)).json()).toEqual({ status: "ok" });
  expect(await ask(url)).toEqual({
    status: 503,
    body: { status: "not_ready", checks: { database: false, schema: false, running: true } },
  });
  needs.ask("database", async () => true);
  expect((await ask(url)).body.checks).toEqual({ database: true, schema: false, running: true });
  needs.ask("schema", async () => true);
  expect(await ask(url)).toEqual({
    status: 200,
    body: { status: "ready", checks: { database: true, schema: true, running: true } },
  });
  needs.ask("database", async () => Promise.reject(new Error("gone")));
  expect((await ask(url)).body.checks).toMatchObject({ database: false });
});

test("however many look at once, what is needed is asked for once", async () => {
  const needs = new Needs(lifecycle);
  let asked = 0;
  const answer = Promise.withResolvers<boolean>();
  needs.ask("database", () => {
    asked += 1;
    return answer.promise;
  });
  const looks = Array.from({ length: 50 }, () => needs.look());
  const serves = needs.serves();
  answer.resolve(true);
  for (const { ready } of await Promise.all(looks)) expect(ready).toBe(true);
  expect(await serves).toBe(true);
  expect(asked).toBe(1);
  await needs.look();
  expect(asked).toBe(2);
});

test("while the program stops it answers to the last, and says so", async () => {
  const url = await open(new Needs(lifecycle));
  const busy = Promise.withResolvers<void>();
  await lifecycle.start("work", { start: () => {}, end: () => busy.promise });
  const stopped = lifecycle.stop(10_000);
  expect(await ask(url)).toEqual({
    status: 503,
    body: { status: "not_ready", checks: { running: false } },
  });
  busy.resolve();
  await stopped;
  await expect(fetch(url)).rejects.toThrow();
});

test("it is off unless asked for, and says why it cannot be had", async () => {
  const needs = new Needs(lifecycle);
  expect(await startAdmin({ config: readConfig({}), log, lifecycle }, [])).toBeUndefined();
  const url = await open(needs);
  const taken = open(needs, { ADMIN_PORT: new URL(url).port });
  await expect(taken).rejects.toThrow(StartupError);
  await expect(taken).rejects.toThrow(/something else listens there.*ADMIN_PORT/);
});
