import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { describeWithDocker } from "../support/docker.ts";
import { IMAGES } from "../support/images.ts";
import { nextStart } from "./allocations.ts";
import { bind, named, tmpfs, useVolumes } from "./docker-volume-harness.ts";

describeWithDocker("docker engine: volumes in sandboxes", ({ host }) => {
  const harness = useVolumes(host, [IMAGES.busybox], ["data", "more"]);
  const { engine, start, run, folder, sandbox } = harness;
  const sh = (allocation: Parameters<typeof run>[0], script: string) =>
    run(allocation, "sh", "-c", script);

  it("mounts", async () => {
    const one = sandbox([named("data", "/data")]);
    await start(one);
    expect(await sh(one, "echo hi >/data/f; cat /data/f; ls -A /dev/.sandgate-volumes")).toBe("hi");
    expect(await readFile(join(await folder("data"), "f"), "utf8")).toBe("hi\n");
    expect(await sh(one, "grep /data /proc/self/mountinfo")).toBe("");
  });
});
