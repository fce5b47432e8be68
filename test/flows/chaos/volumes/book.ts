/** What one file may hold: the digest of a content, or NOTHING. */
export const NOTHING = "nothing";

/** What a client knows of one path of its volume. */
export interface KnownFile {
  /** Where it is in doubt, there are several. */
  may: Set<string>;
  /** No request about it was ever in doubt, so none may still be under way. */
  sure: boolean;
}

/** `no`: nobody asked for it, or it was refused. */
export type Certainty = "no" | "yes" | "doubt";

/** What its client, the only one that uses it, knows of a volume. */
export interface KnownVolume {
  client: string;
  /** Of all volumes its own. */
  name: string;
  /** Undefined: nobody was told. */
  id: string | undefined;
  made: Certainty;
  deleted: Certainty;
  /** By path, with a leading `/`. */
  files: Map<string, KnownFile>;
}

/** What clients of volumes did. */
export class VolumeBook {
  readonly volumes: KnownVolume[] = [];

  add(client: string, name: string): KnownVolume {
    const files = new Map<string, KnownFile>();
    const volume = { client, name, id: undefined, made: "no", deleted: "no", files } as const;
    const known: KnownVolume = { ...volume };
    this.volumes.push(known);
    return known;
  }
}

export function fileOf({ files }: KnownVolume, path: string): KnownFile {
  const known = files.get(path) ?? { may: new Set([NOTHING]), sure: true };
  files.set(path, known);
  return known;
}
