import { setTimeout as sleep } from "node:timers/promises";
import { type Random, randomFrom } from "../../../support/random.ts";
import { changeOf } from "../changes.ts";
import { type ClientOptions, change as changeSandbox } from "../client.ts";
import type { Answer, Request } from "../http.ts";
import { emptySlot, type Slot } from "../slots.ts";
import { fileOf, type KnownVolume, NOTHING } from "./book.ts";
import { chooseForVolume, type Sending, type VolumeChoice } from "./choices.ts";
import { contentOf, digestOf } from "./content.ts";
import type { FileCalls } from "./file-calls.ts";
import { judgeVolume, type Outcome } from "./judge.ts";

export interface KeeperOptions extends ClientOptions {
  /** One for each gateway. */
  files: readonly FileCalls[];
}

const SLOTS = 3;

/** A volume of the client's own, and a sandbox that mounts it. */
interface VolumeSlot {
  volume: KnownVolume | undefined;
  sandbox: Slot;
}

/** Does one thing after the other; nobody else uses its volumes. */
export async function runKeeper(options: KeeperOptions): Promise<void> {
  const { name, seed, signal, pauseMs } = options;
  const keeper = new Keeper(options);
  const choices = randomFrom(`${seed}/choices/${name}`);
  const pauses = randomFrom(`${seed}/pauses/${name}`);
  while (!signal.aborted) {
    await keeper.act(chooseForVolume(choices, SLOTS));
    await sleep(pauses.between(0, pauseMs));
  }
}

class Keeper {
  readonly #options: KeeperOptions;
  readonly #random: Random;
  readonly #slots: VolumeSlot[];
  #operation = 0;

  constructor(options: KeeperOptions) {
    const { name, seed } = options;
    this.#options = options;
    this.#random = randomFrom(`${seed}/tries/${name}`);
    this.#slots = Array.from({ length: SLOTS }, (_, i) => ({
      volume: undefined,
      sandbox: emptySlot(`${name}-${i}`, false),
    }));
  }

  async act(choice: VolumeChoice): Promise<void> {
    const slot = this.#slots[choice.slot] as VolumeSlot;
    const { volume, sandbox } = slot;
    this.#operation += 1;
    if (!volume?.id) return this.#make(slot);
    switch (choice.action) {
      case "make":
        return;
      case "put":
        return this.#put(volume, `/d${this.#operation % 3}/f${this.#operation}`, choice);
      case "overwrite": {
        const path = this.#sureFile(volume);
        return path === undefined ? undefined : this.#put(volume, path, choice);
      }
      case "read":
        return this.#read(volume);
      case "list":
        return this.#list(volume);
      case "remove":
        return this.#remove(volume);
      case "rename":
        return this.#rename(volume);
      case "mount":
        return this.#sandbox("create", sandbox, volume);
      case "start":
      case "stop":
        return this.#sandbox(choice.action, sandbox, volume);
      case "unmount":
        return this.#sandbox("destroy", sandbox, volume);
      case "delete":
        return this.#delete(slot, volume);
      case "race": {
        // Whoever is first keeps the other one out.
        const started = this.#sandbox("start", sandbox, volume);
        this.#operation += 1;
        await Promise.all([started, this.#delete(slot, volume)]);
      }
    }
  }

  async #make(slot: VolumeSlot): Promise<void> {
    const { name: client, journal } = this.#options;
    const name = `${client}-v${this.#operation}`;
    const volume = journal.book.add(client, name);
    slot.volume = volume;
    volume.made = "doubt";
    const body = { name };
    const answer = await this.#insist("make", { method: "POST", path: "/v1/volumes", body });
    if (answer) volume.made = "yes";
    if (typeof answer?.body.id === "string") volume.id = answer.body.id;
  }

  async #put(
    volume: KnownVolume,
    path: string,
    { size, insists, ...sending }: Sending & { insists: boolean },
  ): Promise<void> {
    const file = fileOf(volume, path);
    const content = contentOf(`${volume.name} ${path} ${this.#operation}`, size);
    const digest = digestOf(content);
    const isWhole = sending.breaksAt === null;
    // Before it is asked, for it may be found while it is under way. What breaks off is never to be found.
    if (isWhole) file.may.add(digest);
    while (!this.#options.signal.aborted) {
      const answer = await this.#pickFiles().put(volume.id ?? "", path, content, sending);
      const outcome = this.#note(isWhole ? "put" : "broken put", volume, path, answer);
      if (outcome === "acked") {
        file.may = new Set([digest]);
        return;
      }
      if (outcome !== "again") file.sure = false;
      if (!insists || outcome === "strange") return;
      await this.#rest();
    }
  }

  async #read(volume: KnownVolume): Promise<void> {
    const paths = [...volume.files.keys()];
    if (paths.length === 0) return;
    const path = this.#random.pick(paths);
    const { may } = fileOf(volume, path);
    const { status, digest } = await this.#pickFiles().get(volume.id ?? "", path);
    const { journal, name } = this.#options;
    const found = status === 404 ? NOTHING : digest;
    journal.count(`read ${found === undefined ? "not answered" : "answered"}`);
    if (found !== undefined && !may.has(found))
      journal.strange.push(`${name} read ${found} at ${path} of ${volume.id}`);
  }

  async #list(volume: KnownVolume): Promise<void> {
    const { journal, name } = this.#options;
    const answer = await this.#pickCall()({ method: "GET", path: "/v1/volumes" });
    journal.count(`list volumes ${answer.status === 200 ? "answered" : "not answered"}`);
    if (answer.status !== 200) return;
    const listed = answer.body as unknown as { id: string; kind: string }[];
    if (!listed.some(({ id }) => id === volume.id))
      journal.strange.push(`${name} does not find ${volume.id} in its list`);
    if (listed[0]?.kind !== "host")
      journal.strange.push(`${name} does not find the host volume first`);
  }

  async #remove(volume: KnownVolume): Promise<void> {
    const path = this.#sureFile(volume);
    if (path === undefined) return;
    const file = fileOf(volume, path);
    file.may.add(NOTHING);
    file.sure = false;
    const key = this.#key();
    const send = () => this.#pickFiles().remove(volume.id ?? "", path, key);
    if (await this.#until("remove", volume, path, send)) file.may = new Set([NOTHING]);
  }

  async #rename(volume: KnownVolume): Promise<void> {
    const from = this.#sureFile(volume);
    if (from === undefined) return;
    const to = `/moved/f${this.#operation}`;
    const [source, target] = [fileOf(volume, from), fileOf(volume, to)];
    const content = new Set(source.may);
    source.may.add(NOTHING);
    for (const digest of content) target.may.add(digest);
    source.sure = false;
    target.sure = false;
    const path = `/v1/volumes/${volume.id}/files/rename`;
    const answer = await this.#insist("move", { method: "POST", path, body: { from, to } });
    if (!answer) return;
    source.may = new Set([NOTHING]);
    target.may = content;
  }

  async #sandbox(
    action: "create" | "start" | "stop" | "destroy",
    sandbox: Slot,
    volume: KnownVolume,
  ): Promise<void> {
    if ((action === "create") === (sandbox.id !== undefined)) return;
    const slot = 0;
    const choice =
      action === "create"
        ? ({ action, slot, start: true, wait: false, ephemeral: false, limitSecs: null } as const)
        : ({ action, slot, wait: false, byName: false } as const);
    const mounts = [{ type: "named", name: volume.name, guest: "/data" }];
    const spec = { ...this.#options.spec, mounts };
    const change = changeOf(choice, sandbox, this.#operation, spec);
    const mounting = change && { ...change, mounts: true };
    if (mounting) await changeSandbox(this.#options, this.#operation, mounting, this.#random);
  }

  async #delete(slot: VolumeSlot, volume: KnownVolume): Promise<void> {
    volume.deleted = "doubt";
    const path = `/v1/volumes/${volume.id}`;
    const answer = await this.#insist("delete", { method: "DELETE", path });
    if (!answer) return;
    volume.deleted = answer.status === 200 ? "yes" : "no";
    if (volume.deleted === "yes") slot.volume = undefined;
  }

  /** @returns the answer that is final; undefined: the run is over before */
  #insist(what: string, request: Request): Promise<Answer | undefined> {
    const idempotencyKey = this.#key();
    const send = () => this.#pickCall()({ ...request, idempotencyKey });
    return this.#until(what, undefined, request.path, send);
  }

  async #until(
    what: string,
    volume: KnownVolume | undefined,
    path: string,
    send: () => Promise<Answer>,
  ): Promise<Answer | undefined> {
    while (!this.#options.signal.aborted) {
      const answer = await send();
      const outcome = this.#note(what, volume, path, answer);
      if (outcome === "acked" || outcome === "refused") return answer;
      if (outcome === "strange") return undefined;
      await this.#rest();
    }
    return undefined;
  }

  #note(what: string, volume: KnownVolume | undefined, path: string, answer: Answer): Outcome {
    const { journal, name } = this.#options;
    const outcome = judgeVolume(answer);
    journal.count(`${what} ${outcome}`);
    const { status, code, body } = answer;
    if (outcome === "strange")
      journal.strange.push(
        `${name} ${what} ${volume?.id ?? ""} ${path}: ${status} ${code} ${JSON.stringify(body)}`,
      );
    return outcome;
  }

  /** A file that is there for certain, and that nothing may still be under way to. */
  #sureFile({ files }: KnownVolume): string | undefined {
    const sure = [...files].filter(
      ([, { sure, may }]) => sure && may.size === 1 && !may.has(NOTHING),
    );
    return sure.length === 0 ? undefined : this.#random.pick(sure)[0];
  }

  #key(): string {
    return `${this.#options.name} of volumes #${this.#operation}`;
  }

  #pickCall() {
    return this.#random.pick(this.#options.calls);
  }

  #pickFiles() {
    return this.#random.pick(this.#options.files);
  }

  #rest() {
    return sleep(this.#random.between(50, 400));
  }
}
