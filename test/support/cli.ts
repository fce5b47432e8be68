import { execFile } from "node:child_process";
import { join } from "node:path";

const CLI = join(import.meta.dirname, "../../cli.ts");

/** How a command line ended. */
export interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}

/** Runs the operator's command line as a process of its own, with these settings alone. */
export function runCli(env: Record<string, string>, ...args: string[]): Promise<Ended> {
  const { PATH = "", HOME = "" } = process.env;
  const options = { env: { PATH, HOME, ...env }, maxBuffer: 2 ** 26 };
  return new Promise((done, failed) => {
    execFile(process.execPath, [CLI, ...args], options, (error, stdout, stderr) => {
      const code = error ? error.code : 0;
      if (typeof code === "number") done({ code, stdout, stderr });
      else failed(error);
    });
  });
}
