import { GATE_INIT } from "./gate/gated.ts";

/**
 * What runs a workload inside its container. The container is the machine: it has to outlive the
 * workload, and end at once when it is stopped. Any POSIX shell will do; nothing else of the image is used.
 */
export interface Supervisor {
  /** The container's entrypoint; the workload follows as its arguments, none: idle. */
  entrypoint: string[];
  env: Record<string, string>;
}

const SHELL = "/bin/sh";
/** `$0` of the scripts, and the mark by which a container is known as supervised. */
const MARK = "sandgate";
const MARK_BESIDE = "sandgate-beside-init";

/**
 * Said once, when a workload has ended by itself; not when it was asked to end. Whoever reads the sandbox's output
 * takes it for the system's. A workload that writes it too shortens its own idle time only.
 */
const SAY_ENDED = `echo "sandgate: the workload ended with exit code $?" >&2`;
const SAID = /sandgate: the workload ended with exit code \d+\r?\n?$/;

/** Where in a piece of standard error, behind what the workload left of its last line, it is said; -1: nowhere. */
export function endOfWorkloadAt(text: string): number {
  return text.search(SAID);
}

/** Whether a line of standard error says that the workload ended. */
export function saysWorkloadEnded(line: string): boolean {
  return endOfWorkloadAt(line) >= 0;
}

/**
 * Under docker-init, which reaps. A shell that waits for a foreground child runs no trap, and a
 * background child would have SIGINT and SIGQUIT ignored for good (POSIX 2.11). So the first docker-init signals its whole
 * group: this shell, whose trap runs when the workload has ended, and a second docker-init, which
 * passes it on to the workload alone. It is where the first is, which for a sandbox with a gate is
 * beside that. Reading a pseudo-terminal that nobody can open idles without a process.
 */
const UNDER_INIT = `
unset TINI_KILL_PROCESS_GROUP
trap 'exit 143' TERM
init=${GATE_INIT}
[ -x "$init" ] || init=/sbin/docker-init
if [ $# -gt 0 ]; then
  "$init" -s -- "$@"
  ${SAY_ENDED}
fi
trap - TERM
read -r _ </dev/ptmx
`;

/**
 * As PID 1, for a daemon without docker-init: the shell reaps whatever ends while it waits. Here the
 * workload does run in the background, with SIGINT and SIGQUIT ignored.
 */
const AS_PID_1 = `
trap 'kill -TERM "$child" 2>/dev/null; wait "$child"; exit 143' TERM
if [ $# -gt 0 ]; then
  "$@" & child=$!
  wait "$child"
  ${SAY_ENDED}
fi
read -r _ </dev/ptmx & child=$!
wait "$child"
`;

/**
 * Beside an init of the image's own, which is PID 1 and reaps: the first argument says how many of the others are the
 * init's, and the rest is the workload.
 */
const BESIDE_INIT = `
(
  shift "$1"
  shift
  "$@"
  ${SAY_ENDED}
) &
words=$1
shift
rest=$(($# - words))
while [ "$words" -gt 0 ]; do
  set -- "$@" "$1"
  shift
  words=$((words - 1))
done
shift "$rest"
exec "$@"
`;

/** Runs a workload beside an init, as entrypoint and its arguments. */
export function besideInit(
  init: readonly string[],
  workload: readonly string[],
): { entrypoint: string[]; cmd: string[] } {
  const entrypoint = [SHELL, "-c", BESIDE_INIT, MARK_BESIDE];
  return { entrypoint, cmd: [String(init.length), ...init, ...workload] };
}

/** What besideInit was given; undefined: it was not. */
export function splitBesideInit(
  entrypoint: readonly string[],
  cmd: readonly string[],
): { init: string[]; workload: string[] } | undefined {
  if (entrypoint[0] !== SHELL || entrypoint[3] !== MARK_BESIDE) return undefined;
  const end = 1 + Number(cmd[0]);
  return { init: cmd.slice(1, end), workload: cmd.slice(end) };
}

export function supervisor(hasInit: boolean): Supervisor {
  return {
    entrypoint: [SHELL, "-c", hasInit ? UNDER_INIT : AS_PID_1, MARK],
    env: hasInit ? { TINI_KILL_PROCESS_GROUP: "1" } : {},
  };
}

/** Whether a container was made with a supervisor, of this or an earlier version. */
export function isSupervised(entrypoint: readonly string[]): boolean {
  return entrypoint[0] === SHELL && entrypoint[3] === MARK;
}

/** The one thing that the supervisor needs of an image. */
export const SUPERVISOR_NEEDS = SHELL;
