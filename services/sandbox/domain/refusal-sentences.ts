import type { Feature } from "./requirements.ts";

const OTHERWISE = "is not supported by this deployment's engine";

/** What helps the caller more than that it is not supported; each goes on after the field's name. */
const SENTENCES: Partial<Record<Feature, string>> = {
  network:
    "cannot be had: this deployment cannot enforce network policies, the default one neither; send network.enabled false, or have its operator set DOCKER_NETWORK_POLICY",
  "network.max_connections": "cannot be enforced by this deployment's engine; leave it out",
  "network.policy":
    "cannot be enforced by this deployment; send network.enabled false for a sandbox without any network",
  "network.policy.domains":
    "is by name, and this deployment's engine enforces addresses only; name a cidr or a group",
  "network.secrets":
    "cannot be kept: this deployment's engine puts no values in place of placeholders, so the placeholder is all that any host would see",
  "network.strict": "cannot be honoured by this deployment's engine; send false",
  "patches.copy": "copies from the host volume, which this deployment's engine cannot read",
  "mounts.bind": "is in the host volume, which this deployment's engine cannot mount",
  "mounts.named": "is a volume, which this deployment's engine cannot mount",
  "mounts.options": "cannot be enforced by this deployment's engine where a volume is mounted",
  "mounts.disk_image": "is a disk image, which this deployment's engine cannot mount; use a volume",
  "mounts.disk_image.fstype":
    "cannot be mounted by this deployment's engine; use ext2, ext3, ext4, squashfs or xfs",
  "mounts.disk_image.qcow2":
    "is qcow2, which this deployment's engine cannot mount; convert the image to raw",
  "mounts.disk_image.vmdk":
    "is vmdk, which this deployment's engine cannot mount; convert the image to raw",
  "resources.disk_size_mib": "cannot be limited by this deployment's engine; leave it out",
  "rlimits.as": "limits address space, which this deployment's engine cannot; use memory_mib",
};

/** Why an engine without this feature refuses, as the rest of a sentence that begins with the field. Pure. */
export function refusalOf(feature: string): string {
  return (SENTENCES as Partial<Record<string, string>>)[feature] ?? OTHERWISE;
}
