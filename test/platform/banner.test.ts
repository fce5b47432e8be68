import { expect, test } from "vitest";
import { banner, warningOf } from "../../app/banner.ts";
import type { ChosenEngine } from "../../app/engine.ts";
import { orchestratorReady } from "../../app/roles/orchestrator.ts";
import { readConfig } from "../../runtime/env.ts";
import type { Mounting } from "../../services/orchestrator/engines/docker/mounts/keeper.ts";
import { createSimulatedEngine } from "../../services/orchestrator/engines/simulated.ts";

const BODY = /-d '(.*)'$/m;

function shown(name: string, network: ChosenEngine["network"]): string {
  const engine = { ...createSimulatedEngine({ features: [] }), name };
  return banner({
    url: "http://127.0.0.1:8080",
    rpc: undefined,
    admin: undefined,
    config: readConfig({}),
    engine: { engine, why: "Docker answers", network },
    bootstrap: { keyIn: "file", generatedKey: undefined },
    keyFile: "data/api-key",
  });
}

function bodyOf(text: string) {
  return JSON.parse(BODY.exec(text)?.[1] ?? "");
}

test("enforced policies are a fact, not a warning", () => {
  const text = shown("docker", { state: "enforced", why: "by nftables" });
  expect(text).toContain("policies are enforced by nftables");
  expect(text).not.toContain("WARNING");
  expect(bodyOf(text)).not.toHaveProperty("network");
});

test("where policies cannot be kept it says why and what to do, and the line works all the same", () => {
  const text = shown("docker", { state: "impossible", why: "there is no program nsenter" });
  expect(text).toMatch(/WARNING .*there is no program nsenter/);
  expect(text).toContain("DOCKER_NETWORK_POLICY=unenforced");
  expect(bodyOf(text)).toMatchObject({ network: { enabled: false } });
});

test("what an operator accepted is shown", () => {
  const text = shown("docker", { state: "accepted", why: "" });
  expect(text).toMatch(/WARNING .*NOT ENFORCED/);
  expect(bodyOf(text)).not.toHaveProperty("network");
});

test("an orchestrator alone shows how policies are kept, and what its operator must not miss", () => {
  const engine = { ...createSimulatedEngine({ features: [] }), name: "docker" };
  const text = (network: ChosenEngine["network"]) =>
    orchestratorReady("127.0.0.1:9093", { engine, why: "Docker answers", network });
  const kept = text({ state: "enforced", why: "by nftables" });
  expect(kept).toContain("127.0.0.1:9093; engine docker: Docker answers; network policies are");
  expect(kept).not.toContain("WARNING");
  expect(text({ state: "accepted", why: "" })).toMatch(/WARNING .*NOT ENFORCED/);
  expect(text({ state: "impossible", why: "no nft" })).toMatch(/WARNING .*no nft/);
});

test("the simulated engine says that nothing runs", () => {
  expect(shown("simulated", undefined)).toMatch(/WARNING .*NOTHING REALLY RUNS/);
});

test("disk images are shown where the operator accepted them, and why there are none", () => {
  const engine = { ...createSimulatedEngine({ features: [] }), name: "docker" };
  const shownOf = (volumes: Mounting) =>
    warningOf({ engine, why: "", network: { state: "enforced", why: "" }, volumes }).join("\n");
  const mounted = { possible: true, why: "by bind mounts" };
  expect(shownOf(mounted)).toBe("");
  const accepted = shownOf({ ...mounted, images: { possible: true, why: "" } });
  expect(accepted).toMatch(/WARNING .*DISK IMAGES ARE MOUNTED, as DOCKER_DISK_IMAGES=loop accepts/);
  const without = shownOf({ ...mounted, images: { possible: false, why: "no ext4" } });
  expect(without).toMatch(/WARNING .*NO SANDBOX CAN MOUNT A DISK IMAGE: .*: no ext4\./);
});
