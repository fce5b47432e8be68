import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import { whyOf } from "../data-dir.ts";
import { StartupError } from "../errors.ts";

/** Where a certificate, its key and what to trust lie, as `<prefix>_CERT`, `<prefix>_KEY` and `<prefix>_CA` name them. */
export interface TlsFiles {
  prefix: "TLS" | "HTTPS";
  /** Paths of PEM files. */
  cert: string;
  key: string;
  /** undefined: there is none. */
  ca: string | undefined;
}

/** What such files hold; it fits the options of Node's `tls`. */
export interface TlsMaterial {
  cert: string;
  key: string;
  ca: string | undefined;
  minVersion: "TLSv1.2";
}

/**
 * Reads the files and tries out whether they can be used together.
 * @throws StartupError naming variable and file of what cannot
 */
export async function readTls(files: TlsFiles, now: number = Date.now()): Promise<TlsMaterial> {
  const { cert, key, ca } = files;
  const named = (part: "CERT" | "KEY" | "CA", path: string) => `${path} (${files.prefix}_${part})`;
  const [certText, keyText, caText] = await Promise.all([
    readText(cert, named("CERT", cert)),
    readText(key, named("KEY", key)),
    ca === undefined ? undefined : readText(ca, named("CA", ca)),
  ]);
  const own = parse(certText, named("CERT", cert));
  refuseUntimely(own, named("CERT", cert), now);
  if (!own.checkPrivateKey(parseKey(keyText, named("KEY", key))))
    throw new StartupError(
      `The key in ${named("KEY", key)} is not that of the certificate in ${named("CERT", cert)}`,
    );
  if (caText !== undefined && ca !== undefined) parse(caText, named("CA", ca));
  const material = { cert: certText, key: keyText, ca: caText, minVersion: "TLSv1.2" } as const;
  tryOut(material, named("CERT", cert));
  return material;
}

async function readText(path: string, name: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    throw new StartupError(`The file ${name} cannot be read: ${whyOf(error)}`);
  }
}

function parse(text: string, name: string): X509Certificate {
  try {
    return new X509Certificate(text);
  } catch {
    throw new StartupError(`The file ${name} holds no certificate in PEM`);
  }
}

function parseKey(text: string, name: string) {
  try {
    return createPrivateKey(text);
  } catch {
    throw new StartupError(`The file ${name} holds no private key in PEM without a passphrase`);
  }
}

function refuseUntimely(
  { validFromDate, validToDate }: X509Certificate,
  name: string,
  now: number,
) {
  if (now > validToDate.getTime())
    throw new StartupError(`The certificate in ${name} expired at ${validToDate.toISOString()}`);
  if (now < validFromDate.getTime())
    throw new StartupError(
      `The certificate in ${name} is not valid before ${validFromDate.toISOString()}`,
    );
}

// What OpenSSL alone knows, such as a key that is too small.
function tryOut(material: TlsMaterial, name: string): void {
  try {
    createSecureContext(material);
  } catch (error) {
    throw new StartupError(`The certificate in ${name} cannot be used: ${whyOf(error)}`);
  }
}
