import { hash, randomInt } from "node:crypto";
import { crc32 } from "node:zlib";

const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const OURS = "sgt_live_";
const OUR_KEY = /^sgt_live_([0-9A-Za-z]{32})([0-9A-Za-z]{6})$/;
const ANY_KEY = /^(?=.{20,128}$)[a-z]+_[A-Za-z0-9_-]+$/;

/** What a key that fits looks like, for messages. */
export const API_KEY_FORM =
  "an API key: `sgt_live_` with 32 letters or digits and their checksum, or another lower case prefix and `_`, 20 to 128 characters in all";

/** A new key: `sgt_live_`, 32 random base62 characters, their checksum. */
export function generateApiKey(): string {
  const secret = Array.from({ length: 32 }, () => BASE62.charAt(randomInt(62))).join("");
  return `${OURS}${secret}${checksumOf(secret)}`;
}

/** Whether a text can be a key: of ours with a good checksum, or of somebody else's making. */
export function isApiKey(text: string): boolean {
  if (!text.startsWith(OURS)) return ANY_KEY.test(text);
  const [, secret, checksum] = OUR_KEY.exec(text) ?? [];
  return secret !== undefined && checksum === checksumOf(secret);
}

/** What is stored of a key and sent between services, 32 bytes. A key is random, so that no salt is needed. */
export function hashApiKey(key: string): Buffer {
  return hash("sha256", key, "buffer");
}

/** The parts of a key that may be shown. */
export function describeApiKey(key: string): { prefix: string; lastFour: string } {
  const prefix = key.startsWith(OURS) ? OURS : key.slice(0, key.indexOf("_") + 1);
  return { prefix, lastFour: key.slice(-4) };
}

/** CRC-32 of the random part, in six base62 digits, the highest first. */
function checksumOf(secret: string): string {
  let rest = crc32(secret);
  let digits = "";
  while (digits.length < 6) {
    digits = BASE62.charAt(rest % 62) + digits;
    rest = Math.floor(rest / 62);
  }
  return digits;
}
