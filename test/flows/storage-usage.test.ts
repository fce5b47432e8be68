import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { putFile } from "../support/files.ts";
import type { Program } from "../support/program.ts";
import { inBothShapes } from "../support/shapes.ts";
import { readDisk } from "./chaos/volumes/disk.ts";

// From a file that is put to what its volume is charged for.

inBothShapes("what storage is charged for", (startProgram) => {
  const SLOW = { timeout: 30_000 };
  const MIB = 2 ** 20;

  let program: Program;
  beforeAll(async () => {
    program = await startProgram({ VOLUME_MEASURE_SECS: "1" });
  });
  afterAll(() => program.close());

  interface Row {
    volume_id: string;
    mib_seconds: number;
  }
  const usage = async () => (await program.api("GET", "/v1/billing/usage")).body;
  const heldBy = async (id: string) => {
    const { rows, volumes } = (await program.api("GET", "/v1/billing/usage/storage")).body;
    const own = rows.filter((row: Row) => row.volume_id === id);
    const named = volumes.find((volume: { id: string }) => volume.id === id);
    return {
      mibSeconds: own.reduce((sum: number, row: Row) => sum + row.mib_seconds, 0),
      named,
    };
  };
  const usedBytes = async (id: string) =>
    (await program.api("GET", `/v1/volumes/${id}`)).body.used_bytes;

  test("what is put is measured, counted and shown; a deleted volume's rows stay, its name and bytes go", async () => {
    const { id } = (await program.api("POST", "/v1/volumes", { name: "held" })).body;
    const content = new Uint8Array(8 * MIB).fill(1);
    expect((await putFile(program.api, id, "big", content)).status).toBe(200);
    await expect.poll(() => usedBytes(id), SLOW).toBe(8 * MIB);
    await expect.poll(async () => (await usage()).storage_gib, SLOW).toBeCloseTo(8 / 1024, 12);
    const before = await heldBy(id);
    expect(before.named).toEqual({ id, name: "held" });
    // Eight MiB for each second that passes.
    await expect
      .poll(async () => (await heldBy(id)).mibSeconds - before.mibSeconds, SLOW)
      .toBeGreaterThan(8);

    expect((await program.api("DELETE", `/v1/volumes/${id}`)).status).toBe(200);
    const ended = await heldBy(id);
    expect(ended.mibSeconds).toBeGreaterThanOrEqual(before.mibSeconds);
    expect(ended.named).toBeUndefined();
    expect((await usage()).storage_gib).toBe(0);
    const left = async () => {
      const { volumes, strays } = await readDisk(join(program.dataDir, "volumes"));
      return { strays, there: volumes.some((volume) => volume.id === id) };
    };
    await expect.poll(left, SLOW).toEqual({ strays: [], there: false });
    // Another one of the same name is another volume, and the old one's rows are as they were.
    const again = await program.api("POST", "/v1/volumes", { name: "held" });
    expect(again.body.id).not.toBe(id);
    expect(await heldBy(id)).toEqual(ended);
    const { line_items } = await usage();
    const storage = line_items.find((line: { name: string }) => line.name === "storage");
    expect(storage.quantity).toBeCloseTo(ended.mibSeconds / 1024 / 3600, 9);
  }, 120_000);
});
