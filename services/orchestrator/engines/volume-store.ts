/**
 * Where the bytes of volumes live: the seam between Sandgate and an engine's storage. Every method may be repeated after a
 * crash of either side. A store knows nothing of the database; what it cannot do now throws EngineUnavailable.
 */
export interface VolumeStore {
  /** Removes a volume with all that it holds, in use or not; nothing to remove is success. It is never made again. */
  remove(volume: VolumeKey, signal: AbortSignal): Promise<void>;
  /** What a volume holds now: each file once, however many names it has; holes do not count. One that is not there holds nothing. */
  measure(volume: VolumeKey, signal: AbortSignal): Promise<VolumeUse>;
  /** Undefined: the engine keeps no files that could be reached from outside. */
  readonly files: VolumeFiles | undefined;
}

/** Ids are UUIDs in lower case. A volume is made when it is first used, and empty until then; once removed, all is missing in it. */
export interface VolumeKey {
  orgId: string;
  volumeId: string;
}

export interface VolumeUse {
  bytes: bigint;
  /** Files, directories and links. */
  entries: number;
}

/**
 * The files of volumes. A path is taken from the volume's root, with or without a leading `/`; links are followed as long as
 * they stay in the volume, whatever anybody changes in it meanwhile. Throws FileFault.
 */
export interface VolumeFiles {
  /** In batches, in no promised order; names that are no UTF-8 are left out. A link is shown as what it leads to; what is neither file nor directory is left out. */
  list(volume: VolumeKey, path: string, signal: AbortSignal): AsyncIterable<FileInfo[]>;
  stat(volume: VolumeKey, path: string): Promise<FileInfo>;
  /** The content has to be read to its end or closed. */
  read(volume: VolumeKey, path: string, range: ByteRange): Promise<OpenFile>;
  /**
   * Puts a file in the place of what is there, in one step once all of it is there; its parents are made. One that it
   * replaces leaves it mode and owner, but not the right to act as that owner. A chunk must not be changed once it was given.
   * @param admit asked before more is written, with how much that makes in all; what it throws ends the write, and leaves nothing
   */
  write(
    volume: VolumeKey,
    path: string,
    content: AsyncIterable<Uint8Array>,
    admit: Admit,
  ): Promise<FileInfo>;
  /** With its parents; one that is there is left as it is. */
  makeDirectory(volume: VolumeKey, path: string): Promise<void>;
  /**
   * A file in the place of one that is there or of nothing, or a directory with all that is in it to where nothing is, in one
   * step. Modes, owners and times are kept, parents made; links in a directory are copied as links, other kinds left out.
   */
  copy(
    volume: VolumeKey,
    from: string,
    to: string,
    admit: Admit,
    signal: AbortSignal,
  ): Promise<void>;
  /** In one step; a link itself, not what it leads to. */
  rename(volume: VolumeKey, from: string, to: string): Promise<void>;
  /** A link itself, not what it leads to. A directory is gone at once; an abort only leaves the freeing of its room for later. */
  remove(volume: VolumeKey, path: string, recursive: boolean, signal: AbortSignal): Promise<void>;
}

export type Admit = (bytes: bigint) => Promise<void>;

/** Bytes of a file: from `offset`, at most `length` (null: to the end); or the last `last` of it. */
export type ByteRange = { offset: bigint; length: bigint | null } | { last: bigint };

export interface FileInfo {
  /** From the volume's root, with a leading `/`. */
  path: string;
  kind: "file" | "directory";
  size: bigint;
  /** Permission bits, 0 to 0o7777. */
  mode: number;
  uid: number;
  gid: number;
  accessedAt: Date;
  modifiedAt: Date;
  /** Null: the file system does not tell. */
  createdAt: Date | null;
}

export interface OpenFile {
  info: FileInfo;
  /** Another one as soon as the content may be another; ASCII without quotes. */
  version: string;
  /** What the content is of the file: cut to what there is. */
  offset: bigint;
  length: bigint;
  /** Exactly `length` bytes, or it throws. */
  content: AsyncIterable<Uint8Array>;
  close(): Promise<void>;
}

/**
 * Why a file cannot be had; the message is a sentence for the client, and names its path.
 * `outside`: the path leaves the volume, or is none; `missing`; `conflict`: something else is there.
 */
export class FileFault extends Error {
  override name = "FileFault";
  readonly why: "outside" | "missing" | "conflict";

  constructor(why: FileFault["why"], message: string) {
    super(message);
    this.why = why;
  }
}
