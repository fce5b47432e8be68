import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { operatorCredentials } from "../../services/orchestrator/engines/docker/images/operator-credentials.ts";

describe("the operator's credentials", () => {
  let folder: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "sandgate-credentials-"));
    vi.stubEnv("PATH", `${folder}${delimiter}${process.env.PATH}`);
  });
  afterEach(async () => {
    vi.unstubAllEnvs();
    await rm(folder, { recursive: true });
  });

  const write = (config: object | string) =>
    writeFile(
      join(folder, "config.json"),
      typeof config === "string" ? config : JSON.stringify(config),
    );
  const writeHelper = async (name: string, script: string) => {
    const file = join(folder, `docker-credential-${name}`);
    await writeFile(file, `#!/bin/sh\n${script}\n`);
    await chmod(file, 0o755);
  };
  const ask = (host: string) => operatorCredentials(host, folder);
  const base64 = (text: string) => Buffer.from(text).toString("base64");

  it("are none without a configuration, or for a registry that it does not name", async () => {
    expect(await ask("ghcr.io")).toBeUndefined();
    await write({ auths: { "other.io": { auth: base64("a:b") } } });
    expect(await ask("ghcr.io")).toBeUndefined();
  });

  it("come from auths, by host, by URL, and for Docker Hub by its old name", async () => {
    await write({
      auths: {
        "ghcr.io": { auth: base64("me:pass:word") },
        "https://old.io/v1/": { auth: base64("old:x") },
        "https://index.docker.io/v1/": { identitytoken: "token" },
      },
    });
    expect(await ask("ghcr.io")).toEqual({
      username: "me",
      password: "pass:word",
      serveraddress: "ghcr.io",
    });
    expect(await ask("old.io")).toMatchObject({ username: "old", password: "x" });
    expect(await ask("docker.io")).toEqual({
      identitytoken: "token",
      serveraddress: "https://index.docker.io/v1/",
    });
  });

  it("come from the helper of a registry, or of all, by name or as a token", async () => {
    await writeHelper(
      "one",
      `read host; echo "{\\"Username\\":\\"u-$host\\",\\"Secret\\":\\"s\\"}"`,
    );
    await writeHelper("all", `echo '{"Username":"<token>","Secret":"t"}'`);
    await write({ credHelpers: { "ghcr.io": "one" }, credsStore: "all" });
    expect(await ask("ghcr.io")).toMatchObject({ username: "u-ghcr.io", password: "s" });
    expect(await ask("other.io")).toMatchObject({ identitytoken: "t" });
  });

  it("are none where the helper knows of none", async () => {
    await writeHelper("empty", "echo 'credentials not found in native keychain'; exit 1");
    await write({ credsStore: "empty" });
    expect(await ask("ghcr.io")).toBeUndefined();
  });

  it("that cannot be used are named, with nothing of what is in them", async () => {
    await write("{ not JSON");
    await expect(ask("ghcr.io")).rejects.toThrow("Docker configuration cannot be read");
    await write({ credsStore: "missing" });
    await expect(ask("ghcr.io")).rejects.toThrow("docker-credential-missing does not work");
    await writeHelper("broken", "echo secret; exit 3");
    await write({ credsStore: "broken" });
    await expect(ask("ghcr.io")).rejects.toThrow(
      /^the host's docker-credential-broken does not work; tell its operator$/,
    );
    await writeHelper("babbling", "echo secret");
    await write({ credsStore: "babbling" });
    await expect(ask("ghcr.io")).rejects.toThrow("docker-credential-babbling does not work");
  });
});
