import { execFile } from "node:child_process";
import { readFile, stat } from "node:fs/promises";
import { promisify } from "node:util";
import { StartupError } from "../errors.ts";

const run = promisify(execFile);

/** As whom PostgreSQL's programs run: they refuse to be root. */
export interface Identity {
  /** Goes before the program and its arguments. */
  prefix: string[];
  /** System user to switch to. */
  user?: User;
}

interface User {
  uid: number;
  gid: number;
}

/** In a namespace of its own, root looks like `nobody` to the program, and its files stay root's. */
const NAMESPACE = ["unshare", "-U", "--map-user=65534", "--map-group=65534"];

/**
 * Finds as whom to run `program` on `folder`, and hands the folder to that user.
 * @throws StartupError where root can find nobody
 */
export async function chooseIdentity(folder: string, program: string): Promise<Identity> {
  if (process.getuid?.() !== 0) return { prefix: [] };
  const owner = await stat(folder);
  if (owner.uid === 0 && (await works([...NAMESPACE, "true"]))) return { prefix: NAMESPACE };
  const users = owner.uid === 0 ? await systemUsers() : [{ uid: owner.uid, gid: owner.gid }];
  for (const user of users) {
    await hand(folder, user);
    if (await canUse(user, program, folder)) return { prefix: [], user };
  }
  await hand(folder, owner);
  throw new StartupError(
    `PostgreSQL refuses to run as root, user namespaces are off here, and no system user can reach ${folder} and ${program}: ` +
      "start Sandgate as an ordinary user, move both to where others can read, or set DATABASE_URL",
  );
}

async function systemUsers(): Promise<User[]> {
  const lines = (await readFile("/etc/passwd", "utf8")).split("\n").map((line) => line.split(":"));
  return ["postgres", "nobody"]
    .flatMap((name) => lines.filter((line) => line[0] === name))
    .map((line) => ({ uid: Number(line[2]), gid: Number(line[3]) }))
    .filter(({ uid, gid }) => uid > 0 && gid > 0);
}

async function hand(folder: string, { uid, gid }: User): Promise<void> {
  if ((await stat(folder)).uid !== uid) await run("chown", ["-R", `${uid}:${gid}`, folder]);
}

function canUse(user: User, program: string, folder: string) {
  return works(["sh", "-c", 'test -x "$0" && test -w "$1"', program, folder], user);
}

async function works(command: string[], user?: User): Promise<boolean> {
  const [file = "", ...args] = command;
  return run(file, args, { cwd: "/", ...user }).then(
    () => true,
    () => false,
  );
}
