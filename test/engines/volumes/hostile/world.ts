import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { VolumeKey } from "../../../../services/orchestrator/engines/volume-store.ts";
import { createDirectoryVolumes } from "../../../../services/orchestrator/engines/volumes/directory-volumes.ts";
import { temporary } from "../support.ts";

/** In every file that nobody may reach; their size is told by no other. */
export const CANARY = "OUTSIDE".repeat(14_951);

export const TRICKS = ["directory", "deep", "link", "file", "move"];

/** A volume under attack, with canaries above and beside it. */
export interface World {
  root: string;
  key: VolumeKey;
  inside: string;
  /** What has happened to the canaries. */
  harm(): string[];
  /** How often each trick was played. */
  rounds(): Promise<number[]>;
  stop(): Promise<void>;
}

export async function createWorld(): Promise<World> {
  const folder = await temporary();
  const root = join(folder, "volumes");
  const key = { orgId: randomUUID(), volumeId: randomUUID() };
  const inside = await createDirectoryVolumes({ root }).directory(key);
  const outside = join(folder, "outside");
  mkdirSync(outside);
  const guarded = [outside, root, join(root, key.orgId), join(root, key.orgId, key.volumeId)];
  for (const directory of guarded) putCanaries(directory);
  furnish(inside, outside);
  const before = guarded.map(look);
  const children = TRICKS.map((trick) => unleash(inside, outside, trick));
  onTestFinished(() => stop(children));
  await Promise.all(children.map(asked));
  return {
    root,
    key,
    inside,
    harm: () => guarded.flatMap((directory, i) => differences(before[i] ?? [], look(directory))),
    rounds: () => Promise.all(children.map(asked)),
    stop: () => stop(children),
  };
}

function putCanaries(directory: string): void {
  mkdirSync(join(directory, "sub", "empty"), { recursive: true });
  for (const name of ["file", "sub/file"]) {
    writeFileSync(join(directory, name), CANARY);
    // A read would move the first of these.
    utimesSync(join(directory, name), new Date(0), new Date(1000));
  }
}

function furnish(inside: string, outside: string): void {
  for (const name of ["directory", "tree", "special"]) mkdirSync(join(inside, name));
  mkdirSync(join(inside, "tree", "directory"));
  execFileSync("mkfifo", [join(inside, "special", "pipe")]);
  // It never ends.
  execFileSync("mknod", [join(inside, "special", "device"), "c", "1", "5"]);
  symlinkSync(join(outside, "file"), join(inside, "special", "link-out"));
}

/** Of a directory of canaries, but for the volume and its folders. */
function look(directory: string): string[] {
  const seen = [`${directory}: ${readdirSync(directory).sort().join(" ")}`];
  for (const name of ["sub", "sub/empty", "file", "sub/file"]) {
    const path = join(directory, name);
    const stats = lstatSync(path, { throwIfNoEntry: false });
    if (!stats) return [...seen, `${path} is gone`];
    const { ino, mode, uid, gid, nlink, size, atimeMs, mtimeMs, ctimeMs } = stats;
    const times = name.endsWith("file") ? [atimeMs, mtimeMs, ctimeMs] : [mtimeMs, ctimeMs];
    seen.push(`${path}: ${[ino, mode, uid, gid, nlink, size, ...times].join(" ")}`);
  }
  return seen;
}

function differences(before: readonly string[], after: readonly string[]): string[] {
  return after.filter((line, i) => line !== before[i]);
}

/**
 * The tricksters follow their own links, and must not do harm themselves: wherever those lead, they see something empty.
 * So their volume is mounted deep in a file system of their own, and another lies over the outside.
 */
const SECLUDED = `
  mount -t tmpfs none "$2" && mkdir -p "$2/1/2/3/4/5/volume" &&
  mount --bind "$1" "$2/1/2/3/4/5/volume" && exec "$0" "$3" "$2/1/2/3/4/5/volume" "$2" "$4"`;

function unleash(inside: string, outside: string, trick: string): ChildProcess {
  const script = join(import.meta.dirname, "sandbox.ts");
  const args = [process.execPath, inside, outside, script, trick];
  return spawn("unshare", ["--mount", "sh", "-c", SECLUDED, ...args], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
}

async function asked(child: ChildProcess): Promise<number> {
  child.send("how often?");
  const [rounds] = await once(child, "message");
  return rounds;
}

async function stop(children: ChildProcess[]): Promise<void> {
  const living = children.filter(({ exitCode, signalCode }) => exitCode === null && !signalCode);
  await Promise.all(
    living.map((child) => {
      child.kill("SIGKILL");
      return once(child, "exit");
    }),
  );
}

/** Files of a tree that hold what lies outside of it. */
export function stolen(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) return stolen(path);
    return entry.isFile() && readFileSync(path).includes("OUTSIDE") ? [path] : [];
  });
}
