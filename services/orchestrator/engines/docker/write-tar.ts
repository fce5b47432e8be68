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

/** The entries as a tar, made as it is read; what reading them throws destroys it. */
export function writeTar(entries: readonly TarEntry[]): NodeJS.ReadableStream {
  const pack = tar.pack();
  void writeEntries(pack, entries).catch((error: Error) => pack.destroy(error));
  return pack;
}

/** Bytes. */
export function sizeOf(content: readonly Part[]): number {
  return content.reduce((sum, part) => sum + (Buffer.isBuffer(part) ? part.length : part.size), 0);
}

async function writeEntries(pack: tar.Pack, entries: readonly TarEntry[]): Promise<void> {
  for (const { header, content } of entries) {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const done = (error?: Error | null) => (error ? reject(error) : resolve());
    const entry = pack.entry({ ...header, size: sizeOf(content) }, done);
    // Somebody waits for it below; until then it may already have failed.
    promise.catch(() => undefined);
    for (const part of content)
      for await (const chunk of Buffer.isBuffer(part) ? [part] : part.read())
        if (entry?.write(chunk) === false) await Promise.race([once(entry, "drain"), promise]);
    entry?.end();
    await promise;
  }
  pack.finalize();
}
