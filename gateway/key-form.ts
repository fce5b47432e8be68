import { crc32 } from "node:zlib";

const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const OURS = "sgt_live_";
const OUR_KEY = /^sgt_live_([0-9A-Za-z]{32})([0-9A-Za-z]{6})$/;
const ANY_KEY = /^[A-Za-z0-9_-]{16,256}$/;

/** The key of an `Authorization` header, where its form is good; undefined: it can be nobody's. */
export function bearerKey(header: string | undefined): string | undefined {
  const key = /^bearer +(\S+) *$/i.exec(header ?? "")?.[1];
  return key !== undefined && isWellFormed(key) ? key : undefined;
}

function isWellFormed(key: string): boolean {
  if (!key.startsWith(OURS)) return ANY_KEY.test(key);
  const [, secret, checksum] = OUR_KEY.exec(key) ?? [];
  return secret !== undefined && checksum === checksumOf(secret);
}

/** CRC-32 of the random part, in six base62 digits, the highest first. */
export function checksumOf(secret: string): string {
  let rest = crc32(secret);
  let digits = "";
  while (digits.length < 6) {
    digits = BASE62.charAt(rest % 62) + digits;
    rest = Math.floor(rest / 62);
  }
  return digits;
}
