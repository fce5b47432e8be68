import { textFault, utf8Length } from "../../../validation/rule.ts";
import { text } from "../../../validation/schema.ts";

// What Linux can open, without the NUL behind it; looked at first, for the rest splits the path.
const MAX_PATH = 4095;

/** An absolute path in the machine that is not its root. */
export function machinePath(description: string) {
  return text({ description, rule: machinePathFault, examples: ["/etc/app.conf"] });
}

/** Where storage is mounted in the machine. */
export function mountPoint() {
  return text({
    description: "Absolute path in the machine where the storage appears.",
    rule: mountPointFault,
    examples: ["/data"],
  });
}

/** A path inside the organization's host volume; a leading `/` is its root. */
export function hostVolumePath() {
  return text({
    description: "Path inside the organization's host volume, a leading `/` being its root.",
    rule: hostVolumePathFault,
    examples: ["/projects/app"],
  });
}

/** `/a//b/./c/` is `/a/b/c`. */
export function canonicalPath(path: string): string {
  return `/${partsOf(path).join("/")}`;
}

export function machinePathFault(value: unknown): string | undefined {
  if (typeof value !== "string") return undefined;
  if (!value.startsWith("/")) return "must be an absolute path";
  const tooLong = lengthFault(value);
  if (tooLong) return tooLong;
  if (partsOf(value).includes("..")) return "must not contain `..`";
  if (partsOf(value).length === 0) return "must not be the root";
  return textFault(value);
}

function mountPointFault(value: unknown): string | undefined {
  if (typeof value !== "string") return undefined;
  return (
    machinePathFault(value) ??
    (/[:;,]/.test(value) ? "must not contain `:`, `;` or `,`" : undefined)
  );
}

function hostVolumePathFault(value: unknown): string | undefined {
  if (typeof value !== "string") return undefined;
  if (value === "") return "must not be empty";
  const tooLong = lengthFault(value);
  if (tooLong) return tooLong;
  return partsOf(value).includes("..") ? "must not contain `..`" : textFault(value);
}

function lengthFault(path: string): string | undefined {
  return utf8Length(path) > MAX_PATH ? `must have at most ${MAX_PATH} bytes` : undefined;
}

function partsOf(path: string): string[] {
  return path.split("/").filter((part) => part !== "" && part !== ".");
}
