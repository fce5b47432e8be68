import { once } from "node:events";
import tar from "tar-stream";

/** A file, directory or link, owned by root where its header does not say. */
export interface TarEntry {
  header: tar.Headers & { name: string };
  content: readonly Part[];
}

/** Content, or where it is. */
export type Part = Buffer | Stored;

/** Content that is read when it is needed. */
export interface Stored {
  /** Bytes. */
  size: number;
  /** Exactly so many, or it throws. */
  read(): AsyncIterable<Uint8Array>;
}

/**
 * The entries as a tar, made as it is read. What reading them throws destroys it; to be destroyed itself where it is not
 * read to its end.
 */
export function writeTar(entries: readonly TarEntry[]): tar.Pack {
  const pack = tar.pack();
  const closed = Promise.withResolvers<never>();
  // Nobody may be waiting for it.
  closed.promise.catch(() => undefined);
  pack.on("close", () => closed.reject(new Error("nobody reads the archive any more")));
  void writeEntries(pack, entries, closed.promise).catch((error: Error) => pack.destroy(error));
  return pack;
}

/** Of all of it, in bytes. */
export function sizeOf(content: readonly Part[]): number {
  return content.reduce((sum, part) => sum + (Buffer.isBuffer(part) ? part.length : part.size), 0);
}

async function writeEntries(
  pack: tar.Pack,
  entries: readonly TarEntry[],
  closed: Promise<never>,
): Promise<void> {
  for (const { header, content } of entries) {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    promise.catch(() => undefined);
    const done = (error?: Error | null) => (error ? reject(error) : resolve());
    const entry = pack.entry({ ...header, size: sizeOf(content) }, done);
    for (const part of content)
      for await (const chunk of Buffer.isBuffer(part) ? [part] : part.read())
        if (entry?.write(chunk) === false) await Promise.race([once(entry, "drain"), closed]);
    entry?.end();
    await Promise.race([promise, closed]);
  }
  pack.finalize();
}
