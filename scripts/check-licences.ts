import { readFileSync } from "node:fs";

/** Licences that ask for no more than to be named. */
const PERMISSIVE = [
  "0BSD",
  "(Apache-2.0 AND BSD-3-Clause)",
  "Apache-2.0",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "BlueOak-1.0.0",
  "CC0-1.0",
  "ISC",
  "MIT",
  "MIT OR Apache-2.0",
  "MIT and ISC",
  "Unlicense",
];
/** Of what is not shipped, also those that ask for changes to be published. */
const FOR_TOOLS = ["EPL-2.0", "MPL-2.0"];
/** Of one program that Prisma's command line brings, unchanged. */
const UNCHANGED = ["elkjs: EPL-2.0"];
/** The lock file has no licence of these, whose packages say MIT in an older form. */
const LOOKED_AT = ["buildcheck", "cpu-features", "seq-queue", "ssh2"];

interface Locked {
  license?: string;
  dev?: boolean;
}

const lock: { packages: Record<string, Locked> } = JSON.parse(
  readFileSync(process.argv[2] ?? "package-lock.json", "utf8"),
);
const faults = Object.entries(lock.packages).flatMap(([path, { license, dev }]) => {
  const name = path.split("node_modules/").at(-1) ?? "";
  const allowed = dev ? [...PERMISSIVE, ...FOR_TOOLS] : PERMISSIVE;
  if (name === "" || (license === undefined && LOOKED_AT.includes(name))) return [];
  const fault = `${name}: ${license}`;
  if (license !== undefined && allowed.includes(license)) return [];
  return UNCHANGED.includes(fault) ? [] : [fault];
});
for (const fault of faults) console.error(`A licence that nobody has allowed: ${fault}`);
if (faults.length > 0) process.exitCode = 1;
