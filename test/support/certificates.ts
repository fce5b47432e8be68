import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Paths of PEM files. */
export interface Issued {
  cert: string;
  key: string;
}

/** An authority that issues certificates, by the program openssl, in a folder of its own. */
export interface Authority extends Issued {
  /** @param names such as `DNS:localhost` or `IP:127.0.0.1` */
  issue(name: string, options?: { names?: string; usage?: string }): Issued;
  remove(): void;
}

const NEW_KEY = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30".split(
  " ",
);

export function createAuthority(): Authority {
  const folder = mkdtempSync(join(tmpdir(), "sandgate-ca-"));
  const make = (name: string, ...args: string[]): Issued => {
    const made = { cert: join(folder, `${name}.crt`), key: join(folder, `${name}.key`) };
    const files = ["-keyout", made.key, "-out", made.cert, "-subj", `/CN=${name}`];
    execFileSync("openssl", [...NEW_KEY, ...files, ...args], { stdio: "pipe" });
    return made;
  };
  const ca = make("authority", "-addext", "keyUsage=critical,keyCertSign");
  return {
    ...ca,
    issue(name, { names = "IP:127.0.0.1,DNS:localhost", usage = "serverAuth,clientAuth" } = {}) {
      const extensions = [
        "basicConstraints=critical,CA:FALSE",
        `subjectAltName=${names}`,
        `extendedKeyUsage=${usage}`,
      ].flatMap((extension) => ["-addext", extension]);
      return make(name, "-CA", ca.cert, "-CAkey", ca.key, ...extensions);
    },
    remove: () => rmSync(folder, { recursive: true }),
  };
}
