import { randomUUID } from "node:crypto";
import type { Changes } from "./changes.ts";
import type { Change } from "./domain/sandbox.ts";
import { createHint } from "./hint.ts";
import { MOST_CHANGES, type News, readNews, writeNews } from "./peer-news.ts";
import type { PeerEars, PeerLine } from "./store/peer-line.ts";

/** How often a process says that it lives, and how long another may say nothing until it counts as dead. */
const BEAT_MS = 1_000;
const SILENT_MS = 5_000;
/** Longer than a statement of a process that was killed goes on in the database. */
const LATE_MS = 10_000;
/** Changes of a few milliseconds are told together. */
const GATHER_MS = 5;
/** Messages under way; past it changes gather for fuller ones. */
const MOST_UNDER_WAY = 8;
/** Changes that gather; past it the others are told to read instead. */
const MOST_UNTOLD = 5_000;
const AGAIN_MS = 1_000;

export interface PeerTimes {
  beatMs?: number;
  silentMs?: number;
  lateMs?: number;
}

/**
 * Shares changes between the sandbox processes of a database, so that a watch at one hears of all. Whoever may have
 * missed something tells its watchers that anything may have changed: at a gap between the batches of another, at the
 * first word of one that had some before, when one falls silent that may have committed what it never told, and when
 * its own line was lost. A process alone says nothing but that it lives.
 */
export class Peers {
  readonly #changes: Pick<Changes, "publish" | "reset">;
  readonly #open: (ears: PeerEars) => PeerLine;
  readonly #onError: (error: unknown) => void;
  readonly #times: Required<PeerTimes>;
  readonly #self = randomUUID();
  readonly #others = new Map<string, { batches: number; heardAt: number }>();
  readonly #tellSoon: () => void;
  readonly #timers = new Set<NodeJS.Timeout>();
  #batches = 0;
  #untold: Change[] = [];
  #underWay = 0;
  #line: PeerLine | undefined;
  #isOpen = false;
  #stopped = false;

  constructor(
    changes: Pick<Changes, "publish" | "reset">,
    open: (ears: PeerEars) => PeerLine,
    onError: (error: unknown) => void,
    { beatMs = BEAT_MS, silentMs = SILENT_MS, lateMs = LATE_MS }: PeerTimes = {},
  ) {
    this.#changes = changes;
    this.#open = open;
    this.#onError = onError;
    this.#times = { beatMs, silentMs, lateMs };
    this.#tellSoon = createHint(async () => this.#tellUntold(), onError, GATHER_MS);
  }

  /** Joins the others, and goes on trying. @returns when it has first heard of them, or could not */
  join(): Promise<void> {
    const tried = Promise.withResolvers<void>();
    const beat = setInterval(() => this.#beat(), this.#times.beatMs);
    this.#timers.add(beat.unref());
    this.#connect(tried.resolve);
    return tried.promise;
  }

  /** A change that this process has made, after its commit. */
  readonly tell = (change: Change): void => {
    if (this.#others.size === 0 || !this.#isOpen) {
      this.#batches += 1;
      return;
    }
    this.#untold.push(change);
    if (this.#untold.length > MOST_UNTOLD) this.#skipUntold();
    this.#tellSoon();
  };

  /** Tells what is left, and says goodbye. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const timer of this.#timers) clearTimeout(timer);
    this.#tellUntold();
    this.#skipUntold();
    await this.#say({ changes: [], bye: true });
    await this.#line?.end();
  }

  #connect(tried: () => void): void {
    this.#line = this.#open({
      open: () => {
        this.#isOpen = true;
        // What was before the line is covered by that; one that dies before it is heard has its time to commit.
        this.#suspect();
        void this.#say({ changes: [] }).then(tried);
      },
      heard: (text) => this.#heard(text),
      lost: (error) => {
        this.#isOpen = false;
        this.#others.clear();
        this.#skipUntold();
        // However long it cannot be had again, nobody here waits in vain for what others change.
        this.#changes.reset();
        this.#onError(error);
        tried();
        if (!this.#stopped) this.#later(AGAIN_MS, () => this.#connect(tried));
      },
    });
  }

  #heard(text: string): void {
    const news = readNews(text);
    if (!news) {
      this.#onError(new Error("what another sandbox process said is not understood"));
      this.#changes.reset();
    } else if (news.from !== this.#self) this.#note(news);
  }

  #note(news: News): void {
    const { from, batches, changes, bye } = news;
    const known = this.#others.get(from);
    if (bye) this.#others.delete(from);
    else this.#others.set(from, { batches, heardAt: performance.now() });
    const before = batches - (changes.length > 0 ? 1 : 0);
    if (before !== (known?.batches ?? 0)) this.#changes.reset();
    for (const change of changes) this.#changes.publish(change);
    // So that it knows of this one at once.
    if (!known && !bye) void this.#say({ changes: [] });
  }

  /** As much as may be under way; where PostgreSQL is slow that is fewer messages, and not a gap each. */
  #tellUntold(): void {
    while (this.#untold.length > 0 && this.#underWay < MOST_UNDER_WAY) {
      this.#batches += 1;
      void this.#say({ changes: this.#untold.splice(0, MOST_CHANGES) });
    }
  }

  /** Leaves a gap, at which the others read. */
  #skipUntold(): void {
    if (this.#untold.length > 0) this.#batches += 1;
    this.#untold = [];
  }

  /** What could not be said is a gap to the others. */
  async #say(news: Pick<News, "changes" | "bye">): Promise<void> {
    if (!this.#line || !this.#isOpen) return;
    this.#underWay += 1;
    const text = writeNews({ from: this.#self, batches: this.#batches, ...news });
    await this.#line.say(text).catch(this.#onError);
    this.#underWay -= 1;
    if (!this.#stopped) this.#tellUntold();
  }

  #beat(): void {
    if (this.#underWay < MOST_UNDER_WAY) void this.#say({ changes: [] });
    // Where this process was what was slow, what they said is there to be read first.
    setImmediate(() => this.#forgetSilent());
  }

  #forgetSilent(): void {
    const now = performance.now();
    for (const [id, { heardAt }] of this.#others) {
      if (now - heardAt < this.#times.silentMs) continue;
      this.#others.delete(id);
      this.#suspect();
    }
  }

  /** Somebody may have committed what is never told, or may still do so. */
  #suspect(): void {
    this.#changes.reset();
    this.#later(this.#times.lateMs, () => this.#changes.reset());
  }

  #later(ms: number, work: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      work();
    }, ms);
    this.#timers.add(timer.unref());
  }
}
