import { readFile } from "node:fs/promises";
import { isError } from "../support/log-lines.ts";
import type { Finding } from "./finding.ts";
import type { Target } from "./target.ts";

/** What the processes themselves say: whether each lives, and logged no fault of its own. */
export async function afterwards({ processes, url, apiKey }: Target): Promise<Finding[]> {
  const findings: Finding[] = [];
  const add = (fault: string, answer: string) =>
    findings.push({ operation: "the program", fault, curl: "", answer });
  for (const child of processes) {
    if (!child.lives || child.crashes > 0) add(`${child.name} ended`, child.output().slice(-2_000));
    for (const line of child.output().split("\n").filter(isError).slice(0, 3))
      add(`${child.name} logged an error`, line.slice(0, 1_500));
  }
  const answer = await fetch(`${url}/v1/me/org`, {
    headers: { authorization: `Bearer ${apiKey}` },
  });
  if (answer.status !== 200) add(`afterwards a read answers ${answer.status}`, await answer.text());
  return findings;
}

/** What a process holds now. */
export async function rssMib(pid: number | undefined): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  return Math.round(Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0) / 1024);
}
