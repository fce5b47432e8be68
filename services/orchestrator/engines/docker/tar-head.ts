const BLOCK = 512;
const SIZE = { from: 124, to: 136 };
const TYPE = 156;
// Extended headers, which come before the file that they are about.
const EXTENDED = ["x", "g", "L", "K"];

/**
 * The first bytes of the first file of a tar stream, at most one block; the rest is not read.
 */
export async function tarHead(stream: NodeJS.ReadableStream): Promise<Buffer> {
  let read = Buffer.alloc(0);
  let at = 0;
  for await (const chunk of stream) {
    read = Buffer.concat([read, Buffer.from(chunk)]);
    while (read.length >= at + 2 * BLOCK) {
      const header = read.subarray(at, at + BLOCK);
      const size = Number.parseInt(header.toString("latin1", SIZE.from, SIZE.to), 8) || 0;
      const type = header.toString("latin1", TYPE, TYPE + 1);
      const content = at + BLOCK;
      if (!EXTENDED.includes(type)) return read.subarray(content, content + Math.min(size, BLOCK));
      at = content + Math.ceil(size / BLOCK) * BLOCK;
    }
  }
  return Buffer.alloc(0);
}
