import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pino from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { askEngine } from "../../app/doctor/engine.ts";
import { readConfig } from "../../runtime/env.ts";
import { Lifecycle } from "../../runtime/lifecycle.ts";
import { connectDocker } from "../../services/orchestrator/engines/docker/connect.ts";
import { describeWithDocker } from "../support/docker.ts";
import { putFile } from "../support/files.ts";
import { IMAGES, loadImage } from "../support/images.ts";
import { image, type Program } from "../support/program.ts";
import { inBothShapes } from "../support/shapes.ts";

const MIB = 1024 * 1024;
const hasLoops = existsSync("/dev/loop-control") && existsSync("/usr/sbin/mkfs.ext4");

describeWithDocker("disk images of the whole program on Docker", ({ host }) => {
  inBothShapes("disk images", (startProgram) => {
    const programs: Program[] = [];
    const begin = async (env: Record<string, string> = {}) => {
      const program = await startProgram({ ENGINE: "docker", DOCKER_HOST: host, ...env });
      programs.push(program);
      return program;
    };
    const disk = { type: "disk_image", host: "/disk.img", guest: "/disk", format: "raw" };
    const run = (program: Program, script: string, mounts: object[]) =>
      program.api("POST", "/v1/sandboxes?start=true&wait_for=running&wait_timeout=60", {
        ...image(IMAGES.busybox.name),
        runtime: { cmd: ["sh", "-c", script] },
        mounts,
      });

    beforeAll(() => loadImage(connectDocker({ host }), IMAGES.busybox));
    afterAll(async () => {
      for (const program of programs) {
        const { body } = await program.api("GET", "/v1/sandboxes");
        for (const { id } of body.data) await program.api("DELETE", `/v1/sandboxes/${id}`);
        await program.close();
      }
    });

    test("are refused by name, unless the operator accepts them", async () => {
      const refused = await run(await begin(), "true", [disk]);
      expect(refused).toMatchObject({
        status: 400,
        body: { error: { code: "invalid_sandbox_config", details: { field: "mounts[0]" } } },
      });
    });

    test.runIf(hasLoops)("hold what one sandbox wrote for the next", async () => {
      const program = await begin({ DOCKER_DISK_IMAGES: "loop" });
      for (const [given, field] of [
        [{ format: "qcow2" }, "mounts[0].format"],
        [{ fstype: "btrfs" }, "mounts[0].fstype"],
      ] as const)
        expect(await run(program, "true", [{ ...disk, ...given }])).toMatchObject({
          status: 400,
          body: { error: { code: "invalid_sandbox_config", details: { field } } },
        });
      const id = (await program.api("GET", "/v1/volumes/default")).body.id;
      await putFile(program.api, id, "/disk.img", await freshDisk());
      const writer = await run(program, "echo kept >/disk/f", [disk]);
      expect(writer.body).toMatchObject({ status: "running", last_failure_message: null });
      const twin = await run(program, "true", [disk]);
      expect(twin.body).toMatchObject({
        status: "failed",
        last_failure_message: expect.stringMatching(/^mounts\[0\]\.host: .* mounted already/),
      });
      await program.api("POST", `/v1/sandboxes/${writer.body.id}/stop?wait_for=stopped`);
      const reader = await run(program, "exec 2>&1; cat /disk/f; echo x >/disk/f", [
        { ...disk, options: { readonly: true } },
      ]);
      expect(reader.body).toMatchObject({ status: "running", last_failure_message: null });
      const logs = () => said(program, reader.body.id);
      await expect.poll(logs, { timeout: 20_000 }).toMatch(/kept[\s\S]*Read-only file system/);
    });

    test("the doctor says what is accepted, and whether it can be had", async () => {
      const images = async (value: string, features: string[]) => {
        const config = readConfig({
          ENGINE: "docker",
          DOCKER_HOST: host,
          DOCKER_DISK_IMAGES: value,
        });
        const facts = { leader: { engine: "docker", features } };
        const lifecycle = new Lifecycle(pino({ level: "silent" }));
        const checks = await askEngine({ config, facts, lifecycle, server: undefined });
        return checks.filter(({ name }) => name === "disk images");
      };
      expect(await images("refused", [])).toEqual([]);
      expect(await images("loop", [])).toMatchObject([
        { status: "warn", seen: expect.stringMatching(/cannot mount them/) },
      ]);
      expect(await images("loop", ["mounts.disk_image"])).toMatchObject([
        { status: "warn", seen: expect.stringMatching(/kernel reads file systems that tenants/) },
      ]);
    });
  });
});

/** The first of what a sandbox's log streams. */
async function said({ url, apiKey }: Program, id: string): Promise<string> {
  const headers = { authorization: `Bearer ${apiKey}` };
  const signal = AbortSignal.timeout(2_000);
  const { body } = await fetch(`${url}/v1/sandboxes/${id}/logs`, { headers, signal });
  let text = "";
  try {
    for await (const chunk of body ?? []) text += Buffer.from(chunk).toString();
  } catch {
    // It goes on for as long as the sandbox runs.
  }
  return text;
}

async function freshDisk(): Promise<Buffer> {
  const folder = await mkdtemp(join(tmpdir(), "sandgate-disk-"));
  const path = join(folder, "disk.img");
  await writeFile(path, "");
  await truncate(path, 2 * MIB);
  execFileSync("mkfs.ext4", ["-q", "-F", path]);
  const content = await readFile(path);
  await rm(folder, { recursive: true });
  return content;
}
