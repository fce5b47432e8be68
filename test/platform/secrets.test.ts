import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { createSecrets } from "../../runtime/secrets.ts";

const key = randomBytes(32);
const secrets = createSecrets(key);

test("what is sealed comes back, by the same key after a restart too", () => {
  const again = createSecrets(key);
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), fc.string(), (plaintext, context) => {
      const sealed = secrets.seal(plaintext, context);
      expect(Buffer.from(again.unseal(sealed, context))).toEqual(Buffer.from(plaintext));
    }),
  );
});

test("the same plaintext is never sealed the same way, and does not show", () => {
  const plaintext = Buffer.from("a password");
  const [one, two] = [secrets.seal(plaintext, "c"), secrets.seal(plaintext, "c")];
  expect(Buffer.from(one).equals(two)).toBe(false);
  expect(Buffer.from(one).includes(plaintext)).toBe(false);
});

test("any changed byte, another context, another key and a cut are noticed", () => {
  const sealed = secrets.seal(Buffer.from("a password"), "sandbox 1");
  for (let at = 0; at < sealed.length; at += 1) {
    const changed = Uint8Array.from(sealed);
    changed[at] = (changed[at] ?? 0) ^ 1;
    expect(() => secrets.unseal(changed, "sandbox 1")).toThrow();
  }
  expect(() => secrets.unseal(sealed, "sandbox 2")).toThrow();
  expect(() => createSecrets(randomBytes(32)).unseal(sealed, "sandbox 1")).toThrow();
  for (const length of [0, 1, 28, sealed.length - 1]) {
    expect(() => secrets.unseal(sealed.subarray(0, length), "sandbox 1")).toThrow();
  }
});

test("an HMAC depends on key, purpose and data", () => {
  const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");
  const mac = hex(secrets.hmac("cursor", "x"));
  expect(mac).toHaveLength(64);
  expect(hex(createSecrets(key).hmac("cursor", Buffer.from("x")))).toBe(mac);
  expect(hex(secrets.hmac("other", "x"))).not.toBe(mac);
  expect(hex(secrets.hmac("cursor", "y"))).not.toBe(mac);
  expect(hex(createSecrets(randomBytes(32)).hmac("cursor", "x"))).not.toBe(mac);
});
