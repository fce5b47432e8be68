import tar from "tar-stream";

/** A file, directory or link, owned by root where its header does not say. */
export interface TarEntry {
  header: tar.Headers & { name: string };
  content: Buffer[];
}

/** The entries as a tar, made as it is read. */
export function writeTar(entries: readonly TarEntry[]): NodeJS.ReadableStream {
  const pack = tar.pack();
  void writeEntries(pack, entries).catch((error: Error) => pack.destroy(error));
  return pack;
}

async function writeEntries(pack: tar.Pack, entries: readonly TarEntry[]): Promise<void> {
  for (const { header, content } of entries) {
    const size = content.reduce((sum, { length }) => sum + length, 0);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const done = (error?: Error | null) => (error ? reject(error) : resolve());
    const entry = pack.entry({ ...header, size }, done);
    for (const part of content) entry?.write(part);
    entry?.end();
    await promise;
  }
  pack.finalize();
}
