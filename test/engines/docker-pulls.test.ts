import { mkdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { privateName } from "../../services/orchestrator/engines/docker/images/local-images.ts";
import { notePrivatePull } from "../../services/orchestrator/engines/docker/images/private-pulls.ts";
import { parseReference } from "../../services/orchestrator/engines/docker/images/reference.ts";
import type { RegistryCredentials } from "../../services/orchestrator/engines/engine.ts";
import { describeWithDocker } from "../support/docker.ts";
import { IMAGES } from "../support/images.ts";
import { startRegistry, type TestRegistry } from "../support/registry.ts";
import { allocate, type SpecChanges } from "./allocations.ts";
import { useDocker } from "./docker-harness.ts";

describeWithDocker("docker engine: pulls", ({ host, network }) => {
  const configDirectory = join(tmpdir(), `sandgate-docker-config-${process.pid}`);
  const patience = { answerMs: 1_500, stallMs: 20_000 };
  const harness = useDocker(host, Object.values(IMAGES), { configDirectory, patience });
  const { docker, engine, start, container } = harness;
  let registry: TestRegistry;
  let inline: RegistryCredentials & { mode: "inline" };
  let images = 0;

  beforeAll(async () => {
    registry = await startRegistry(network);
    const { username, password } = registry;
    inline = { mode: "inline", username, password };
  });
  afterAll(async () => {
    await registry.stop();
    await rm(configDirectory, { recursive: true, force: true });
  });

  /** An image that only the registry has. */
  async function pushed(name: string = IMAGES.busybox.name): Promise<string> {
    const path = `team/app-${++images}:1`;
    await registry.push(docker, name, path);
    return `${registry.host}/${path}`;
  }
  const startWith = (credentials: RegistryCredentials, spec: SpecChanges) =>
    start(allocate(spec, { registry: credentials }));
  const isHere = (reference: string) =>
    docker
      .getImage(reference)
      .inspect()
      .then(
        () => true,
        () => false,
      );

  describe("with credentials", () => {
    it("of its own pulls by tag, and by digest", async () => {
      const image = await pushed();
      expect(await startWith(inline, { image })).toMatchObject({ state: "running" });
      const path = "team/by-digest";
      const digest = await registry.push(docker, IMAGES.busybox.name, `${path}:1`);
      const byDigest = { image: `${registry.host}/${path}@${digest}` };
      expect(await startWith(inline, byDigest)).toMatchObject({ state: "running" });
      await expect(startWith({ mode: "anonymous" }, byDigest)).rejects.toThrow("wants credentials");
    });

    it("of the operator pulls, and finds them anew each time", async () => {
      const image = await pushed();
      await expect(startWith({ mode: "auto" }, { image })).rejects.toThrow("wants credentials");
      await login(registry.password);
      expect(await startWith({ mode: "auto" }, { image })).toMatchObject({ state: "running" });
      await login("not it");
      await expect(startWith({ mode: "auto" }, { image: await pushed() })).rejects.toThrow(
        `registry ${registry.host} refused the credentials`,
      );
    });

    it("that are wrong fails, and says so", async () => {
      const image = await pushed();
      const wrong = { mode: "inline", username: registry.username, password: "wrong" } as const;
      await expect(startWith(wrong, { image })).rejects.toThrow(
        `registry ${registry.host} refused the credentials for image '${image}'`,
      );
    });

    it("missing fails, and says so", async () => {
      const image = await pushed();
      await expect(startWith({ mode: "anonymous" }, { image })).rejects.toThrow(
        `registry ${registry.host} wants credentials for image '${image}'`,
      );
    });
  });

  describe("an image that one organization pulled with its own credentials", () => {
    it("is not there for others, nor for other credentials, by any policy or name", async () => {
      const image = await pushed();
      await startWith(inline, { image });
      const others = [
        [{ mode: "anonymous" }, "if_missing"],
        [{ mode: "anonymous" }, "never"],
        [{ mode: "inline", username: registry.username, password: "guess" }, "if_missing"],
      ] as const;
      for (const [credentials, pullPolicy] of others)
        await expect(startWith(credentials, { image, pullPolicy })).rejects.toThrow(image);
      expect(await isHere(image)).toBe(false);
      const all = await docker.listImages();
      const kept = all.flatMap(({ RepoTags }) => RepoTags ?? []);
      for (const name of kept.filter((name) => name.startsWith("sandgate.invalid/")))
        await expect(
          startWith({ mode: "anonymous" }, { image: name, pullPolicy: "never" }),
        ).rejects.toThrow("does not exist");
    });

    it("is there for the same credentials without asking the registry again", async () => {
      const image = await pushed();
      await startWith(inline, { image });
      expect(await startWith(inline, { image, pullPolicy: "never" })).toMatchObject({
        state: "running",
      });
    });

    it("does not stay open where a crash came between its pull and that", async () => {
      const image = await pushed();
      const reference = parseReference(image);
      await notePrivatePull(docker, reference, privateName(reference, inline), undefined);
      const [repo = "", tag = ""] = image.split(/:(?=[^/]*$)/);
      await docker.getImage(IMAGES.busybox.name).tag({ repo, tag });
      await expect(
        startWith({ mode: "anonymous" }, { image, pullPolicy: "never" }),
      ).rejects.toThrow("is not on this host");
      expect(await startWith(inline, { image, pullPolicy: "never" })).toMatchObject({
        state: "running",
      });
      const { Volumes } = await docker.listVolumes();
      expect(Volumes.filter(({ Name }) => Name.startsWith("sandgate-pull-"))).toEqual([]);
    });

    it("leaves an open image of that name as it was", async () => {
      const image = await pushed(IMAGES.configured.name);
      const { Id } = await docker.getImage(IMAGES.busybox.name).inspect();
      const [repo = "", tag = ""] = image.split(/:(?=[^/]*$)/);
      await docker.getImage(Id).tag({ repo, tag });
      const sandbox = allocate({ image, pullPolicy: "always" }, { registry: inline });
      await start(sandbox);
      expect((await docker.getImage(image).inspect()).Id).toBe(Id);
      expect((await container(sandbox).inspect()).Image).not.toBe(Id);
    });
  });

  describe("by policy", () => {
    it("never takes what is there and pulls nothing", async () => {
      const here = { image: IMAGES.busybox.name, pullPolicy: "never" } as const;
      expect(await startWith(inline, here)).toMatchObject({ state: "running" });
      const image = await pushed();
      await expect(startWith(inline, { image, pullPolicy: "never" })).rejects.toThrow(
        `image '${image}' is not on this host, and pull_policy is never`,
      );
    });

    it("if_missing keeps what is there, always asks the registry", async () => {
      const image = await pushed();
      await startWith(inline, { image });
      const path = image.slice(registry.host.length + 1);
      await registry.push(docker, IMAGES.configured.name, path);
      const [kept, fresh] = (["if_missing", "always"] as const).map((pullPolicy) =>
        allocate({ image, pullPolicy }, { registry: inline }),
      );
      if (!kept || !fresh) throw new Error("there are two");
      await start(kept);
      await start(fresh);
      const workdir = async (it: typeof kept) => (await container(it).inspect()).Config.WorkingDir;
      expect(await workdir(kept)).toBe("");
      expect(await workdir(fresh)).toBe("/srv");
    });

    it("a restart keeps its disk and pulls nothing", async () => {
      const sandbox = allocate(
        { image: await pushed(), pullPolicy: "always" },
        { registry: inline },
      );
      await start(sandbox);
      const again = { ...sandbox, generation: 2, registry: { mode: "anonymous" } as const };
      expect(await start(again)).toMatchObject({ generation: 2, state: "running" });
    });
  });

  describe("that cannot succeed say why, for", () => {
    it("a missing tag, a missing repository", async () => {
      const image = await pushed();
      for (const missing of [`${image}-missing`, `${registry.host}/team/none:1`])
        await expect(startWith(inline, { image: missing })).rejects.toThrow(
          `image '${missing}' does not exist`,
        );
    });

    it("a registry that nothing listens for", async () => {
      await expect(startWith(inline, { image: "127.0.0.1:1/team/app:1" })).rejects.toThrow(
        "registry 127.0.0.1:1 cannot be reached: connection refused",
      );
    });

    it("a host that does not exist", async () => {
      const image = "registry.invalid/team/app:1";
      await expect(startWith(inline, { image })).rejects.toThrow(
        /^registry registry.invalid (cannot be reached|stopped answering)/,
      );
    });

    it("an image for another processor", async () => {
      const { name, architecture } = IMAGES.foreign;
      await expect(startWith(inline, { image: name })).rejects.toThrow(
        new RegExp(`^image '${name}' is for ${architecture}; this host is `),
      );
      const image = await pushed(name);
      await expect(startWith(inline, { image })).rejects.toThrow(`is for ${architecture}`);
    });

    it("a part of an image's id, which the daemon would take for a name", async () => {
      const { Id } = await docker.getImage(IMAGES.busybox.name).inspect();
      const image = Id.slice("sha256:".length, "sha256:".length + 12);
      await expect(
        startWith({ mode: "anonymous" }, { image, pullPolicy: "never" }),
      ).rejects.toThrow(`image '${image}' is not on this host`);
    });
  });

  it("of one image at once are one pull, and one who leaves does not take it from the others", async () => {
    const image = await pushed();
    const events: string[] = [];
    const watch = await docker.getEvents({ filters: { type: ["image"], event: ["pull"] } });
    watch.on("data", (line) => events.push(String(line)));
    const leaving = new AbortController();
    const left = engine.ensureRunning(allocate({ image }, { registry: inline }), leaving.signal);
    const stay = [1, 2, 3].map(() => startWith(inline, { image }));
    leaving.abort(new Error("leaves"));
    await expect(left).rejects.toThrow("leaves");
    for (const up of await Promise.all(stay)) expect(up).toMatchObject({ state: "running" });
    await expect.poll(() => events.filter((line) => line.includes(image)).length).toBe(1);
    // A stream of the daemon's that would go on for ever.
    if ("destroy" in watch && typeof watch.destroy === "function") watch.destroy();
  });

  async function login(password: string): Promise<void> {
    const auth = Buffer.from(`${registry.username}:${password}`).toString("base64");
    const config = { auths: { [registry.host]: { auth } } };
    await mkdir(configDirectory, { recursive: true });
    await writeFile(join(configDirectory, "config.json"), JSON.stringify(config));
  }
});
