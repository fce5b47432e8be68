import { EventEmitter } from "node:events";
import { Writable } from "node:stream";
import type Docker from "dockerode";
import type { Instance } from "../engine.ts";
import { saysWorkloadEnded } from "./supervisor.ts";

/** Longer than the sentence that is looked for. */
const TAIL = 200;

/** A machine that runs and whose workload's end somebody needs to know. */
export interface Watched {
  containerId: string;
  instance: Instance;
  /** See Machine. */
  outputFrom: Date;
  /** There is no workload: it counts as ended when the machine came up. */
  isEmpty: boolean;
}

interface Follower {
  endedAt: Date | null;
  stop: AbortController;
}

/**
 * When workloads ended, as their supervisors said in their containers' output. It is read from the run's start, so nothing is lost
 * with this process or with the daemon; a follower that broke off begins again at the next look.
 */
export class WorkloadEnds {
  readonly #docker: Docker;
  readonly #followers = new Map<string, Follower>();
  /** `end` with the sandbox's id. */
  readonly found = new EventEmitter().setMaxListeners(0);

  constructor(docker: Docker) {
    this.#docker = docker;
  }

  /** The machine with what is known of its workload; follows it from now on. */
  see(watched: Watched): Instance {
    if (watched.isEmpty)
      return { ...watched.instance, workloadEndedAt: watched.instance.startedAt };
    const key = keyOf(watched);
    const follower = this.#followers.get(key) ?? this.#follow(key, watched);
    return { ...watched.instance, workloadEndedAt: follower.endedAt };
  }

  /** Forgets every machine but these. */
  keep(watched: readonly Watched[]): void {
    const kept = new Set(watched.map(keyOf));
    for (const [key, { stop }] of this.#followers) {
      if (kept.has(key)) continue;
      stop.abort();
      this.#followers.delete(key);
    }
  }

  #follow(key: string, watched: Watched): Follower {
    const follower: Follower = { endedAt: null, stop: new AbortController() };
    this.#followers.set(key, follower);
    void this.#read(watched, follower)
      .catch(() => undefined)
      .then(() => {
        if (follower.endedAt) this.found.emit("end", watched.instance.sandboxId);
        else if (this.#followers.get(key) === follower) this.#followers.delete(key);
      });
    return follower;
  }

  async #read({ containerId, outputFrom }: Watched, follower: Follower): Promise<void> {
    const { signal } = follower.stop;
    const stream = await this.#docker.getContainer(containerId).logs({
      follow: true,
      stdout: false,
      stderr: true,
      timestamps: true,
      since: outputFrom.getTime() / 1_000,
      abortSignal: signal,
    });
    const { promise, resolve } = Promise.withResolvers<void>();
    const reader = lineReader((time, line) => {
      if (follower.endedAt || !saysWorkloadEnded(line)) return;
      follower.endedAt = time;
      resolve();
    });
    for (const end of ["end", "close", "error"]) stream.on(end, () => resolve());
    this.#docker.modem.demuxStream(stream, reader, reader);
    await promise;
    if ("destroy" in stream && typeof stream.destroy === "function") stream.destroy();
  }
}

function keyOf({ containerId, instance }: Watched): string {
  return `${containerId} ${instance.startedAt?.getTime()}`;
}

/** Takes what the daemon sends of one message each, with its time before it; a long line comes in several. */
function lineReader(onLine: (time: Date, line: string) => void): Writable {
  let tail = "";
  return new Writable({
    write(chunk: Buffer, _encoding, done) {
      const message = chunk.toString();
      const space = message.indexOf(" ");
      tail = (tail + message.slice(space + 1)).slice(-TAIL);
      if (message.endsWith("\n")) {
        onLine(new Date(message.slice(0, space)), tail);
        tail = "";
      }
      done();
    },
  });
}
