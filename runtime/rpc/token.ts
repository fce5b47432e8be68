import { createHash, timingSafeEqual } from "node:crypto";

/**
 * A check of the header `authorization` for a service token, in constant time.
 * @param tokens any of them will do
 */
export function tokenCheck(tokens: readonly string[]): (authorization: string) => boolean {
  const expected = tokens.map((token) => sha256(`Bearer ${token}`));
  return (authorization) => {
    // Digests have one length, whatever was sent; and all are compared, whichever fits.
    const given = sha256(authorization);
    return expected.map((digest) => timingSafeEqual(given, digest)).includes(true);
  };
}

function sha256(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
