import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmod,
  copyFile,
  mkdir,
  mkdtemp,
  readFile,
  rm,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import type Docker from "dockerode";

const run = promisify(execFile);
const BUSYBOX = "/bin/busybox";
const PASSWD = "root:x:0:0:root:/root:/bin/sh\napp:x:1000:1000:app:/home/app:/bin/sh\n";

/** An image to be made from busybox-static alone; nothing is pulled. */
export interface TestImage {
  /** Such as `sandgate-test/busybox`. */
  name: string;
  /** Path in the image -> content; those under bin/ are executable. */
  files?: Record<string, string>;
  /** Path in the image -> what the symbolic link there leads to. */
  links?: Record<string, string>;
  /** Names under /bin that are busybox; the program tells by its name what it is to do. */
  applets: readonly string[];
  config?: {
    Entrypoint?: string[];
    Cmd?: string[];
    Env?: string[];
    User?: string;
    WorkingDir?: string;
    Volumes?: Record<string, object>;
    Labels?: Record<string, string>;
  };
  /** Default: this machine's. */
  architecture?: string;
}

const APPLETS = ["sh", "sleep", "cat", "ls", "ps", "id", "env", "pwd", "hostname", "kill", "grep"];
const MORE = ["mount", "touch", "echo", "true", "false", "test", "dd", "nproc", "ip", "ping", "nc"];
const TOOLS = ["cp", "rm", "mkdir", "chmod", "ln", "umount", "unshare", "nslookup", "arping"];

export const IMAGES = {
  /** A shell and nothing to run. */
  busybox: { name: "sandgate-test/busybox", applets: [...APPLETS, ...MORE, ...TOOLS] },
  /** One static program and no shell. */
  noShell: {
    name: "sandgate-test/no-shell",
    applets: ["sleep"],
    config: { Entrypoint: ["/bin/sleep"], Cmd: ["1000"] },
  },
  /** No shell, and nothing to run. */
  noCommand: { name: "sandgate-test/no-command", applets: ["sleep"] },
  /** Everything that an image may say. */
  configured: {
    name: "sandgate-test/configured",
    applets: [...APPLETS, ...MORE],
    files: {
      "usr/bin/entry": '#!/bin/sh\necho "entry $*"\n',
      "usr/bin/broken": "#!/bin/bash\n",
      "usr/share/plain": "no program\n",
    },
    config: {
      Entrypoint: ["entry"],
      Cmd: ["from", "image"],
      Env: ["PATH=/usr/bin:/bin", "FROM_IMAGE=yes"],
      User: "app",
      WorkingDir: "/srv",
    },
  },
  /** For a machine that this one is not. */
  foreign: {
    name: "sandgate-test/foreign",
    applets: ["sh"],
    architecture: process.arch === "arm64" ? "amd64" : "arm64",
  },
} satisfies Record<string, TestImage>;

/** Makes an image and loads it into the daemon, where it stays: it is small, and the next run needs it. */
export async function loadImage(docker: Docker, image: TestImage): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "sandgate-image-"));
  try {
    await writeRoot(join(folder, "root"), image);
    await tar(join(folder, "root"), join(folder, "layer.tar"));
    await writeManifest(folder, image);
    await rm(join(folder, "root"), { recursive: true });
    const file = join(tmpdir(), `${folder.split("/").at(-1)}.tar`);
    await tar(folder, file);
    // The stream has to be read to its end: that is when the image is there.
    const answer = await text(await docker.loadImage(file));
    await rm(file);
    if (/"error"/.test(answer))
      throw new Error(`image ${image.name} could not be loaded: ${answer}`);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function writeRoot(
  root: string,
  { applets, files = {}, links = {} }: TestImage,
): Promise<void> {
  await mkdir(join(root, "bin"), { recursive: true });
  await copyFile(BUSYBOX, join(root, "bin", applets[0] ?? "busybox"));
  for (const applet of applets.slice(1)) await symlink(applets[0] ?? "", join(root, "bin", applet));
  const all: Record<string, string> = { "etc/passwd": PASSWD, ...files };
  for (const [path, content] of Object.entries(all)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), content);
    if (path.includes("bin/")) await chmod(join(root, path), 0o755);
  }
  for (const [path, target] of Object.entries(links)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await symlink(target, join(root, path));
  }
}

// The form that `docker save` writes.
async function writeManifest(folder: string, image: TestImage): Promise<void> {
  const layer = await readFile(join(folder, "layer.tar"));
  const config = {
    architecture: image.architecture ?? (process.arch === "x64" ? "amd64" : process.arch),
    os: "linux",
    config: image.config ?? {},
    rootfs: { type: "layers", diff_ids: [`sha256:${sha256(layer)}`] },
  };
  const manifest = [
    { Config: "config.json", RepoTags: [`${image.name}:latest`], Layers: ["layer.tar"] },
  ];
  await writeFile(join(folder, "config.json"), JSON.stringify(config));
  await writeFile(join(folder, "manifest.json"), JSON.stringify(manifest));
}

async function tar(folder: string, file: string): Promise<void> {
  const reproducible = ["--sort=name", "--mtime=@0", "--owner=0", "--group=0", "--numeric-owner"];
  await run("tar", [...reproducible, "-C", folder, "-cf", file, "."]);
}

function sha256(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}
