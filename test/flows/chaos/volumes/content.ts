import { createHash } from "node:crypto";

/** Bytes that no other label makes. */
export function contentOf(label: string, size: number): Buffer {
  const seed = createHash("sha256").update(label).digest();
  const whole = Math.ceil(size / seed.length);
  return Buffer.concat(Array.from({ length: whole }, () => seed)).subarray(0, size);
}

export function digestOf(content: Uint8Array): string {
  return `${content.length} ${createHash("sha256").update(content).digest("hex")}`;
}
