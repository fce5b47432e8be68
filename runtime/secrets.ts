import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from "node:crypto";

/** What is derived from the one secret key; every purpose has a key of its own. */
export interface Secrets {
  /** Encrypts what must not be stored readable; `context`, such as an id, binds it to its place. */
  seal(plaintext: Uint8Array, context: string): Uint8Array;
  /** @throws Error where it was sealed with another key or context, or changed since */
  unseal(sealed: Uint8Array, context: string): Uint8Array;
  /** HMAC-SHA-256, 32 bytes. */
  hmac(purpose: string, data: string | Uint8Array): Uint8Array;
}

const CIPHER = "aes-256-gcm";
const VERSION = 1;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** @param key 32 bytes */
export function createSecrets(key: Uint8Array): Secrets {
  const subkey = (purpose: string) =>
    new Uint8Array(hkdfSync("sha256", key, new Uint8Array(), `sandgate ${purpose}`, 32));
  const sealKey = subkey("seal");
  // A key that comes as bytes is prepared anew for each use, which costs four times as much.
  const hmacKeys = new Map<string, KeyObject>();
  const hmacKey = (purpose: string) => {
    const known = hmacKeys.get(purpose) ?? createSecretKey(subkey(`hmac ${purpose}`));
    hmacKeys.set(purpose, known);
    return known;
  };
  return {
    seal: (plaintext, context) => seal(sealKey, plaintext, context),
    unseal: (sealed, context) => unseal(sealKey, sealed, context),
    hmac: (purpose, data) => createHmac("sha256", hmacKey(purpose)).update(data).digest(),
  };
}

/** Version (1 byte), nonce (12), ciphertext, tag (16). */
function seal(key: Uint8Array, plaintext: Uint8Array, context: string): Uint8Array {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key, nonce).setAAD(associated(context));
  const ciphertext = Buffer.concat([cipher.update(plaintext), cipher.final()]);
  return Buffer.concat([Uint8Array.of(VERSION), nonce, ciphertext, cipher.getAuthTag()]);
}

function unseal(key: Uint8Array, sealed: Uint8Array, context: string): Uint8Array {
  if (sealed[0] !== VERSION || sealed.length < 1 + NONCE_BYTES + TAG_BYTES) {
    throw new Error("not a sealed value of this version");
  }
  const nonce = sealed.subarray(1, 1 + NONCE_BYTES);
  const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(associated(context)).setAuthTag(sealed.subarray(-TAG_BYTES));
  const ciphertext = sealed.subarray(1 + NONCE_BYTES, -TAG_BYTES);
  return Buffer.concat([decipher.update(ciphertext), decipher.final()]);
}

function associated(context: string): Uint8Array {
  return Buffer.from(`${VERSION} ${context}`);
}
