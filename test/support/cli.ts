import { execFile } from "node:child_process";
import { EventEmitter } from "node:events";
import { join } from "node:path";
import { runCli } from "../../cli/run.ts";
import { COMPILED } from "./child.ts";

const CLI = join(import.meta.dirname, "../../cli.ts");

/** How a command line ended. */
export interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}

/** Runs the operator's command line in this process, which spares the start of one. */
export async function callCli(env: Record<string, string>, ...args: string[]): Promise<Ended> {
  const said = { stdout: "", stderr: "" };
  const io = {
    out: (text: string) => {
      said.stdout += text;
    },
    err: (text: string) => {
      said.stderr += text;
    },
  };
  const exit = () => {};
  const code = await runCli({ args, env, io, signals: new EventEmitter(), exit });
  return { code, ...said };
}

/** The same as a process of its own. */
export function spawnCli(env: Record<string, string>, ...args: string[]): Promise<Ended> {
  const { PATH = "", HOME = "" } = process.env;
  const options = { env: { PATH, HOME, ...COMPILED, ...env }, maxBuffer: 2 ** 26 };
  return new Promise((done, failed) => {
    execFile(process.execPath, [CLI, ...args], options, (error, stdout, stderr) => {
      const code = error ? error.code : 0;
      if (typeof code === "number") done({ code, stdout, stderr });
      else failed(error);
    });
  });
}
