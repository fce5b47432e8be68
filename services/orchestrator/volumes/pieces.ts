const KIB = 1024;
const LEAST = 256 * KIB;
const MOST = 1024 * KIB;

/** The same bytes in pieces of 256 KiB to 1 MiB, the last one shorter: few messages, none of them large. */
export async function* inPieces(content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let gathered: Uint8Array[] = [];
  let size = 0;
  const flush = () => {
    const piece =
      gathered.length === 1 && gathered[0] ? gathered[0] : Buffer.concat(gathered, size);
    gathered = [];
    size = 0;
    return piece;
  };
  for await (const chunk of content)
    for (let at = 0; at < chunk.length; at += MOST) {
      const part = chunk.subarray(at, at + MOST);
      if (size + part.length > MOST) yield flush();
      gathered.push(part);
      size += part.length;
      if (size >= LEAST) yield flush();
    }
  if (size > 0) yield flush();
}
