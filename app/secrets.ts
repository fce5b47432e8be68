import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { Config } from "../runtime/config.ts";
import { keepSecretFile } from "../runtime/data-dir.ts";
import { StartupError } from "../runtime/errors.ts";
import { createSecrets, type Secrets } from "../runtime/secrets.ts";

const KEY_BYTES = 32;

/**
 * For a role that runs alone: what one seals another opens, so that they share the key.
 * @throws StartupError where there is none
 */
export function requireSecrets({ secretsKey }: Config): Secrets {
  if (secretsKey) return createSecrets(secretsKey);
  throw new StartupError(
    "A role that runs alone needs SECRETS_KEY: 32 bytes in base64 or hexadecimal, the same for all of them; `openssl rand -base64 32` makes one",
  );
}

/**
 * From SECRETS_KEY, or a key that is kept in a file.
 * @throws StartupError where the file cannot be used
 */
export async function provideSecrets({ secretsKey, dataDir }: Config): Promise<Secrets> {
  if (secretsKey) return createSecrets(secretsKey);
  const path = join(dataDir, "secrets-key");
  const text = await keepSecretFile(path, () => randomBytes(KEY_BYTES).toString("base64"));
  const key = Buffer.from(text, "base64");
  if (key.length !== KEY_BYTES) {
    throw new StartupError(`The file ${path} does not hold ${KEY_BYTES} bytes in base64`);
  }
  return createSecrets(key);
}
