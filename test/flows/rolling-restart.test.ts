import { afterAll, beforeAll, expect, test } from "vitest";
import { byFetch, byHttp } from "./rolling/calls.ts";
import { files, followers, lives, repeat, type Work } from "./rolling/clients.ts";
import { type RollingSystem, startRollingSystem } from "./rolling/system.ts";

// Two of each role behind balancers; each process is ended and started again, one after the other, while clients work.

const LONG = 600_000;

let system: RollingSystem;
beforeAll(async () => {
  system = await startRollingSystem();
}, LONG);
afterAll(() => system?.close(), LONG);

test(
  "a rolling restart of every role shows clients no error",
  async () => {
    const { url, apiKey } = system;
    const stop = new AbortController();
    const work: Work = { signal: stop.signal, rounds: new Map(), errors: [] };
    const pooled = byFetch(url, apiKey);
    const kept = byHttp(url, apiKey, true);
    const fresh = byHttp(url, apiKey, false);
    const clients = {
      "lives-pooled": lives("lives-pooled", pooled),
      "lives-kept": lives("lives-kept", kept),
      "lives-fresh": lives("lives-fresh", fresh),
      "files-pooled": await files("files-pooled", pooled),
      "files-kept": await files("files-kept", kept),
      follower: await followers("follower", fresh, url, apiKey),
    };
    const working = Object.entries(clients).map(([name, round]) => repeat(name, work, round));
    const codes: Record<string, number | null> = {};
    for (const member of system.members) {
      codes[member.child.name] = await system.restart(member);
      expect(work.errors, system.logs()).toEqual([]);
    }
    // All go on behind the last restart, too.
    const after = (name: string) => work.rounds.get(name) ?? 0;
    const seen = new Map(work.rounds);
    for (const name of Object.keys(clients).filter((one) => one !== "follower"))
      await expect
        .poll(() => after(name), { timeout: 60_000 })
        .toBeGreaterThan((seen.get(name) ?? 0) + 1);
    stop.abort();
    // A follower ends with its sandbox's stream alone.
    await Promise.all(working.slice(0, -1));
    expect(work.errors).toEqual([]);
    expect(codes).toEqual(Object.fromEntries(Object.keys(codes).map((name) => [name, 0])));
    // Every gateway and every orchestrator has sent it elsewhere.
    expect(after("follower")).toBeGreaterThanOrEqual(2);
  },
  LONG,
);
