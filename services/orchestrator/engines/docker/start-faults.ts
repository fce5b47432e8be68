import { EngineFailure, EngineUnavailable } from "../engine.ts";
import type { DockerError } from "./call.ts";

// setrlimit's numbers on Linux, as the runtime names them in its errors.
const RLIMITS = [
  "cpu",
  "fsize",
  "data",
  "stack",
  "core",
  "rss",
  "nproc",
  "nofile",
  "memlock",
  "as",
  "locks",
  "sigpending",
  "msgqueue",
  "nice",
  "rtprio",
  "rttime",
];

/** What the daemon and the runtime under it say at a start, and what that means to the sandbox's owner. */
const SENTENCES: [RegExp, (found: string) => string][] = [
  [/unable to find user (.+?): /, (user) => `user ${JSON.stringify(user)} is not in the image`],
  [/unable to find group (.+?): /, (group) => `group ${JSON.stringify(group)} is not in the image`],
  [
    /setting rlimit type (\d+)/,
    (type) => `rlimit '${RLIMITS[Number(type)] ?? type}' is more than this host allows`,
  ],
  [/exec: ("[^"]+"): .*not found/, (command) => `command ${command} is not in the image`],
  [/exec: ("[^"]+"): permission denied/, (command) => `command ${command} is not executable`],
  [
    /Cannot mkdir: (.+?) is not a directory/,
    (path) => `workdir: ${JSON.stringify(path)} is not a directory`,
  ],
  [/(no space left on device)/, () => "there is no space left on the host"],
  [/(OOM-killed)/, () => "the memory is too little to start at all"],
];

// The daemon is there, but what it stands on is not, or it is about to go.
const TRANSIENT =
  /containerd\.sock|transport is closing|context (?:deadline exceeded|canceled)|marked for removal|database not open|shutting down/;

/** Worth another try, at a start and before it. Pure. */
export function isTransient({ message }: DockerError): boolean {
  return TRANSIENT.test(message);
}

/** The container is up, and the daemon does not know: it ended between starting it and writing that down. Pure. */
export function isUpUnseen({ message }: DockerError): boolean {
  return /id already in use/.test(message);
}

/** Pure. */
export function startFault(error: DockerError): EngineFailure | EngineUnavailable {
  const { message } = error;
  for (const [pattern, sentence] of SENTENCES) {
    const found = pattern.exec(message)?.[1];
    if (found !== undefined) return new EngineFailure(sentence(found));
  }
  if (isTransient(error) || isUpUnseen(error)) return new EngineUnavailable(message);
  return new EngineFailure(`the container could not be started: ${lastCause(message)}`);
}

// Each layer puts its own words before the one below it, and some add a guess of theirs at the end.
const LAYERS = /^.*(?:caused: |container init: |container process: )/s;
const AFTERTHOUGHT = /: unknown\b.*$/s;
// Where the sandbox's disk is on the host is nobody's business.
const HOST_ROOT = /\/[^\s"]*\/(?:merged|rootfs)(?=\/)/g;

function lastCause(message: string): string {
  const cause = message.replace(AFTERTHOUGHT, "").replace(LAYERS, "").replace(HOST_ROOT, "");
  return cause.trim();
}
