import { PIECE } from "../../../runtime/rpc/pieces.ts";

/** The same bytes in pieces of one size, the last one shorter; copied only where one is put together from several chunks. */
export async function* inPieces(content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let held: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of content)
    for (let at = 0; at < chunk.length; ) {
      const part = chunk.subarray(at, at + PIECE - size);
      held.push(part);
      size += part.length;
      at += part.length;
      if (size < PIECE) continue;
      yield together(held, size);
      held = [];
      size = 0;
    }
  if (size > 0) yield together(held, size);
}

function together(parts: readonly Uint8Array[], size: number): Uint8Array {
  const [first] = parts;
  return first?.length === size ? first : Buffer.concat(parts, size);
}
