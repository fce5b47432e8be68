import { spawnSync } from "node:child_process";

// Fails on known vulnerabilities of level high or worse in what production runs. Where the registry cannot be asked it
// says so and passes, unless SANDGATE_REQUIRE_AUDIT=1.

interface Report {
  vulnerabilities?: Record<string, { severity: string }>;
  /** Only a report has it. */
  auditReportVersion?: number;
}

const { stdout } = spawnSync("npm", ["audit", "--omit=dev", "--json", ...process.argv.slice(2)], {
  encoding: "utf8",
  // A report that were cut off would count as none.
  maxBuffer: Number.POSITIVE_INFINITY,
});
const report = parse(stdout);
if (report?.auditReportVersion === undefined) {
  const required = process.env.SANDGATE_REQUIRE_AUDIT === "1";
  console.error(
    "NOT AUDITED: the registry did not answer `npm audit`; vulnerabilities are not known.",
  );
  if (required) process.exitCode = 1;
} else {
  const bad = Object.entries(report.vulnerabilities ?? {}).filter(([, { severity }]) =>
    ["high", "critical"].includes(severity),
  );
  for (const [name, { severity }] of bad) console.error(`A vulnerability (${severity}): ${name}`);
  if (bad.length > 0) process.exitCode = 1;
}

function parse(text: string): Report | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
