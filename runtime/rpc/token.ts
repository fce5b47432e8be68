import { createHash, timingSafeEqual } from "node:crypto";
import { Code, ConnectError } from "@connectrpc/connect";

/** A check of request headers for the service token, in constant time. */
export function tokenGate(token: string): (context: { requestHeader: Headers }) => void {
  const expected = sha256(`Bearer ${token}`);
  return ({ requestHeader }) => {
    // Digests have one length, whatever was sent.
    const given = sha256(requestHeader.get("authorization") ?? "");
    if (!timingSafeEqual(given, expected))
      throw new ConnectError("unauthenticated", Code.Unauthenticated);
  };
}

function sha256(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
