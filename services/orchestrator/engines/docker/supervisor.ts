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

/**
 * Under docker-init, which reaps. A shell that waits for a foreground child runs no trap, and a
 * background child would have SIGINT and SIGQUIT ignored for good (POSIX 2.11). So the first docker-init signals its whole
 * group: this shell, whose trap runs when the workload has ended, and a second docker-init, which
 * passes it on to the workload alone. Reading a pseudo-terminal that nobody can open idles without a process.
 */
const UNDER_INIT = `
unset TINI_KILL_PROCESS_GROUP
trap 'exit 143' TERM
[ $# -eq 0 ] || /sbin/docker-init -s -- "$@"
trap - TERM
read -r _ </dev/ptmx
`;

/**
 * As PID 1, for a daemon without docker-init: the shell reaps whatever ends while it waits. Here the
 * workload does run in the background, with SIGINT and SIGQUIT ignored.
 */
const AS_PID_1 = `
trap 'kill -TERM "$child" 2>/dev/null; wait "$child"; exit 143' TERM
if [ $# -gt 0 ]; then "$@" & child=$!; wait "$child"; fi
read -r _ </dev/ptmx & child=$!
wait "$child"
`;

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
