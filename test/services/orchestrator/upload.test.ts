import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { WriteFileRequestSchema } from "../../../proto/gen/orchestrator/v1/volume_file_service_pb.ts";
import { PIECE } from "../../../runtime/rpc/pieces.ts";
import { inPieces } from "../../../services/orchestrator/volumes/pieces.ts";
import { receiveUpload } from "../../../services/orchestrator/volumes/upload.ts";

const VOLUME = "019a7c1e-0000-7000-8000-000000000002";
const target = create(WriteFileRequestSchema, {
  part: { case: "target", value: { volumeId: VOLUME, path: "/f" } },
});
const data = create(WriteFileRequestSchema, { part: { case: "data", value: Buffer.from("x") } });
const forEver = new Promise<never>(() => undefined);

async function drain(content: AsyncIterable<Uint8Array>): Promise<number> {
  let bytes = 0;
  for await (const { length } of content) bytes += length;
  return bytes;
}

test("an upload that falls silent is given up, whether or not anything came", async () => {
  async function* afterwards() {
    yield target;
    yield data;
    await forEver;
  }
  async function* fromTheStart() {
    await forEver;
    yield target;
  }
  const { signal } = new AbortController();
  const silent = "invalid request: data: nothing came for 0.02 s";
  await expect(receiveUpload(fromTheStart(), signal, 20)).rejects.toThrow(silent);
  const { content } = await receiveUpload(afterwards(), signal, 20);
  await expect(drain(content)).rejects.toThrow(silent);
});

test("an upload whose sender is gone ends at once, whatever its messages do", async () => {
  async function* stuck() {
    yield target;
    await forEver;
  }
  async function* endsAsIfWhole() {
    yield target;
    hangUp.abort();
  }
  let hangUp = new AbortController();
  const waiting = await receiveUpload(stuck(), hangUp.signal);
  const read = drain(waiting.content);
  hangUp.abort();
  await expect(read).rejects.toThrow("[canceled] the upload broke off");
  hangUp = new AbortController();
  const { content } = await receiveUpload(endsAsIfWhole(), hangUp.signal);
  await expect(drain(content)).rejects.toThrow("[canceled] the upload broke off");
});

test.each([[], [0], [1], [PIECE], [1_000_000, 3, 0, 600_000], Array(100).fill(10_000)])(
  "pieces are of one size but for the last, and the same bytes (%#)",
  async (...lengths: number[]) => {
    let next = 0;
    const chunks = lengths.map((length) => Uint8Array.from({ length }, () => (next++ * 7) % 251));
    async function* content() {
      yield* chunks;
    }
    const pieces: Uint8Array[] = [];
    for await (const piece of inPieces(content())) pieces.push(piece);
    expect(Buffer.concat(pieces).equals(Buffer.concat(chunks))).toBe(true);
    expect(pieces.slice(0, -1).every(({ length }) => length === PIECE)).toBe(true);
    expect(pieces.every(({ length }) => length > 0)).toBe(true);
  },
);
