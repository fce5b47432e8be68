import { brotliDecompressSync } from "node:zlib";
import type { DirectoryVolumes } from "../../volumes/directory-volumes.ts";
import { holdOne, type Rehearsal } from "../gate/held-container.ts";
import { becomes } from "../gate/held-process.ts";
import { listLoops } from "./loop-devices.ts";
import { makeMounts } from "./make-mounts.ts";
import { isSame } from "./places.ts";
import type { DiskMount } from "./plan.ts";
import { NOBODY, PROBE } from "./rehearse-mounts.ts";
import { locateSources } from "./sources.ts";
import { stagedMount } from "./stage.ts";

/**
 * An ext4 of 64 KiB with nothing in it, of
 *   truncate -s 64K image && mkfs.ext4 -O ^has_journal,^resize_inode,^metadata_csum,^64bit,^dir_index,^ext_attr \
 *     -b 1024 -N 16 -m 0 -E root_owner=0:0,nodiscard image
 */
const IMAGE = [
  "E///IC8OzFOfx1KFc819ipMamyPAxvSeyiOQBTd2RMLOyKbCz866KVSKWH8hHWbAOH8h/qYMLPHgTR1PdIbTiQ3o9w",
  "zyAMsw0MwjTijR8+hcDPhyABZIus1NCfzyrldGFF51uUW8szgDrKEgAEAffWYBj//G1Hr5Sdgi4EI3/jQuImMAAAJL",
  "ZnLdXbQmt0OvpCyRoq8veCAy5mCFa8M3XMICRlhTRAWreb5j15odcVURGdET4hYWENnwdPGUOrFt4az3Har526W6ol",
  "/36MO/VF2pVTOwDXeWre4HgDe1c79dmxVD8AwA8K9v6FmaPOT7OXLpaXQSQQt0fskACMgI6kswlAAASOvm6YO1Qxqt",
  "Hn0AAD0UtLpYAAQ=",
].join("");

const PATH = "image";
const GONE_MS = 10_000;

// Others may be rehearsing too, with the same image or the one that it replaces.
const MOUNT: DiskMount = {
  kind: "disk",
  label: "mounts[0]",
  guest: "/probe",
  field: "mounts[0]",
  volumeId: NOBODY,
  path: PATH,
  fstype: null,
  flags: { readonly: true, noexec: true, nosuid: true, nodev: true },
};

/**
 * Does once, with a container that has no network, all that a start with a disk image takes, and sees its device gone.
 * @throws Error saying what does not work
 */
export async function rehearseImages(
  volumes: DirectoryVolumes,
  rehearsal: Rehearsal,
): Promise<void> {
  const directory = await volumes.directory(PROBE);
  const content = brotliDecompressSync(Buffer.from(IMAGE, "base64"));
  await volumes.files.write(PROBE, PATH, only(content), async () => undefined);
  const sources = await locateSources(volumes, PROBE.orgId, [MOUNT]);
  try {
    await holdOne(rehearsal, [stagedMount(PROBE.volumeId, directory)], ({ held }) =>
      makeMounts(held, { plan: [MOUNT], sources }, "/"),
    );
    const { identity } = sources.of(MOUNT);
    const isGone = async () => !(await listLoops()).some(({ image }) => isSame(image, identity));
    if (!(await becomes(isGone, GONE_MS)))
      throw new Error("a loop device did not go with its container");
  } finally {
    await sources.close();
  }
}

async function* only(content: Buffer): AsyncGenerator<Buffer> {
  yield content;
}
