/** A mount as /proc/<pid>/mountinfo shows it. */
export interface MountEntry {
  /** As in /proc/<pid>/fdinfo. */
  id: number;
  /** Where it is, from the root of that process. */
  at: string;
  /** Such as `ro` and `nosuid`. */
  options: string[];
  type: string;
  /** Of the whole file system. */
  superOptions: string[];
}

/** Pure. */
export function parseMountinfo(text: string): MountEntry[] {
  return text.split("\n").filter(Boolean).map(parseLine);
}

// 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
function parseLine(line: string): MountEntry {
  const [own = "", system = ""] = line.split(" - ");
  const [id, , , , at = "", options = ""] = own.split(" ");
  const [type = "", , superOptions = ""] = system.split(" ");
  return {
    id: Number(id),
    at: unescaped(at),
    options: options.split(","),
    type,
    superOptions: superOptions.split(","),
  };
}

// Space, tab, line break and backslash are; other characters stand for themselves.
function unescaped(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 8)),
  );
}
