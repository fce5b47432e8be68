import { afterAll, beforeAll, expect, test } from "vitest";
import { connectDocker } from "../../services/orchestrator/engines/docker/connect.ts";
import { describeWithDocker } from "../support/docker.ts";
import { getFile, putFile } from "../support/files.ts";
import { IMAGES, loadImage } from "../support/images.ts";
import { image, type Program } from "../support/program.ts";
import { inBothShapes } from "../support/shapes.ts";

describeWithDocker("volumes of the whole program on Docker", ({ host }) => {
  inBothShapes("volumes", (startProgram) => {
    let program: Program;

    beforeAll(async () => {
      await loadImage(connectDocker({ host }), IMAGES.busybox);
      program = await startProgram({ ENGINE: "docker", DOCKER_HOST: host, STOP_GRACE_SECS: "1" });
    });
    afterAll(() => program.close());

    const volume = async (name: string) =>
      (await program.api("POST", "/v1/volumes", { name })).body.id as string;
    const hostVolume = async () =>
      (await program.api("GET", "/v1/volumes/default")).body.id as string;
    const read = (id: string, path: string) => getFile(program.url, program.apiKey, id, path);

    /** Starts a sandbox whose workload is a script. */
    const run = (name: string, script: string, more: object) =>
      program.api("POST", "/v1/sandboxes?start=true&wait_for=running&wait_timeout=60", {
        ...image(IMAGES.busybox.name),
        name,
        runtime: { cmd: ["sh", "-c", script] },
        ...more,
      });

    test("what the API puts there a sandbox reads, and what it writes the next one and the API read", async () => {
      const id = await volume("shared");
      await putFile(program.api, id, "/in/question", "6 x 7");
      const mounts = [{ type: "named", name: "shared", guest: "/data" }];
      const answered = await run(
        "first",
        "cp /data/in/question /data/copy; echo 42 >/data/answer",
        {
          mounts,
        },
      );
      expect(answered.body).toMatchObject({ status: "running", last_failure_message: null });
      await expect.poll(() => read(id, "/answer")).toEqual({ status: 200, text: "42\n" });
      expect(await read(id, "/copy")).toEqual({ status: 200, text: "6 x 7" });
      await run("second", "cat /data/answer /data/answer >/data/twice", { mounts });
      await expect.poll(() => read(id, "/twice")).toEqual({ status: 200, text: "42\n42\n" });
      const refused = await program.api("DELETE", `/v1/volumes/${id}`);
      expect(refused).toMatchObject({ status: 409, body: { error: { code: "volume_in_use" } } });
      expect(refused.body.error.message).toMatch(/first.*second|second.*first/);
      for (const name of ["first", "second"])
        await program.api("DELETE", `/v1/sandboxes/by-name/${name}`);
      expect(await read(id, "/answer")).toEqual({ status: 200, text: "42\n" });
      expect((await program.api("DELETE", `/v1/volumes/${id}`)).status).toBe(200);
    });

    test("binds and copies are of the host volume; read-only is, nested mounts are", async () => {
      const id = await hostVolume();
      const log = await volume("log");
      await putFile(program.api, id, "/code/main", "from the host volume");
      await putFile(program.api, id, "/etc/greeting", "copied");
      const script = `
        echo spoilt >/code/main; echo spoilt >/code/more
        cat /code/main /greeting >/code/log/seen
        echo later >/greeting`;
      const { body } = await run("builder", script, {
        network: { enabled: false },
        mounts: [
          { type: "named", name: "log", guest: "/code/log" },
          { type: "bind", host: "/code", guest: "/code", options: { readonly: true } },
        ],
        patches: [{ type: "copy_file", src: "/etc/greeting", dst: "/greeting" }],
      });
      expect(body).toMatchObject({ status: "running", last_failure_message: null });
      await expect
        .poll(() => read(log, "/seen"))
        .toMatchObject({ text: "from the host volumecopied" });
      expect(await read(id, "/code/main")).toMatchObject({ text: "from the host volume" });
      expect(await read(id, "/code/more")).toMatchObject({ status: 404 });
      expect(await read(id, "/etc/greeting")).toMatchObject({ text: "copied" });
    });

    test("a bind of what is not there fails, and says so", async () => {
      const { body } = await run("lost", "true", {
        mounts: [{ type: "bind", host: "/nowhere", guest: "/here" }],
      });
      expect(body).toMatchObject({
        status: "failed",
        last_failure_message: expect.stringContaining("mounts[0].host"),
      });
    });
  });
});
