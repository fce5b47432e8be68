import type { Client } from "@connectrpc/connect";
import type { FastifyBaseLogger } from "fastify";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Waits } from "../../gateway/waits.ts";
import { type Sandbox, SandboxStatus } from "../../proto/gen/sandbox/v1/sandbox_pb.ts";
import type { SandboxService } from "../../proto/gen/sandbox/v1/sandbox_service_pb.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("where anything may have changed all look, but not all at once", async () => {
  const reset = Promise.withResolvers<void>();
  const watchSandboxes = async function* (_: unknown, { signal }: { signal: AbortSignal }) {
    await reset.promise;
    yield { cursor: "1", event: { case: "reset", value: {} } };
    await new Promise((ended) => signal.addEventListener("abort", ended));
  };
  const waits = new Waits(2_000);
  const log = { warn: () => undefined } as unknown as FastifyBaseLogger;
  waits.start({ watchSandboxes } as unknown as Client<typeof SandboxService>, log);

  let status: SandboxStatus = SandboxStatus.STARTING;
  const read = vi.fn(async () => ({ status }) as Sandbox);
  const { signal } = new AbortController();
  const held = Array.from({ length: 1_000 }, (_, i) =>
    waits.hold({ admit: async () => `box-${i}`, read, budgetMs: 300_000, signal }),
  );
  await vi.advanceTimersByTimeAsync(0);
  expect(read).toHaveBeenCalledTimes(1_000);

  status = SandboxStatus.RUNNING;
  reset.resolve();
  await vi.advanceTimersByTimeAsync(0);
  expect(read).toHaveBeenCalledTimes(1_100);
  await vi.advanceTimersByTimeAsync(50);
  expect(read).toHaveBeenCalledTimes(1_200);
  await vi.advanceTimersByTimeAsync(450);
  expect(new Set((await Promise.all(held)).map((sandbox) => sandbox?.status))).toEqual(
    new Set([SandboxStatus.RUNNING]),
  );
  expect(read).toHaveBeenCalledTimes(2_000);
  waits.drain();
});
