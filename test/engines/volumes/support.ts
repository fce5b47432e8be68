import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readdirSync, readlinkSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import type {
  ByteRange,
  FileFault,
  FileInfo,
} from "../../../services/orchestrator/engines/volume-store.ts";
import { createDirectoryVolumes } from "../../../services/orchestrator/engines/volumes/directory-volumes.ts";

export const never = new AbortController().signal;
/** Of what comes by itself, on a machine that has other work too. */
export const PATIENT = { timeout: 20_000 };
export const admitAll = async () => {};

/** A folder of its own, gone when the test is over. */
export async function temporary(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "volumes-"));
  // Of any depth, and with any names.
  onTestFinished(() => void execFileSync("rm", ["-rf", path]));
  return path;
}

/** A volume with shorthands for what tests do in it. */
export async function createVolume() {
  const root = await temporary();
  const volumes = createDirectoryVolumes({ root });
  const key = { orgId: randomUUID(), volumeId: randomUUID() };
  const { files } = volumes;
  return {
    root,
    volumes,
    key,
    files,
    /** As a sandbox sees it. */
    inside: await volumes.directory(key),
    /** Private folder above it. */
    folder: join(root, key.orgId, key.volumeId),
    put: (path: string, ...chunks: (string | Uint8Array)[]) =>
      files.write(key, path, contentOf(chunks), admitAll),
    async get(path: string, range: ByteRange = { offset: 0n, length: null }): Promise<string> {
      const file = await files.read(key, path, range);
      return (await collect(file.content)).toString();
    },
    async list(path: string): Promise<FileInfo[]> {
      const infos: FileInfo[] = [];
      for await (const batch of files.list(key, path, never)) infos.push(...batch);
      return infos;
    },
    /** Descriptors of this process that lead into it. */
    descriptors: () => descriptorsBelow(root),
    /** Nothing of it is open any more; the volume itself is so for a while. */
    allClosed: () => expect.poll(() => descriptorsBelow(root), PATIENT).toEqual([]),
  };
}

export async function* contentOf(chunks: (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) yield typeof chunk === "string" ? Buffer.from(chunk) : chunk;
}

export async function collect(content: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of content) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** Why something is refused; fails where it is not, or otherwise. */
export async function whyNot(act: Promise<unknown>): Promise<FileFault["why"]> {
  const error = await act.then(
    () => new Error("it was not refused"),
    (error: unknown) => error,
  );
  if (error instanceof Error && error.name === "FileFault" && "why" in error)
    return error.why as FileFault["why"];
  throw error;
}

export function descriptorsBelow(root: string): string[] {
  return readdirSync("/proc/self/fd").flatMap((fd) => {
    try {
      const path = readlinkSync(`/proc/self/fd/${fd}`);
      return path.startsWith(root) ? [path] : [];
    } catch {
      return [];
    }
  });
}
