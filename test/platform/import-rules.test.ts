import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";

let project: string;

beforeEach(() => {
  project = mkdtempSync(join(tmpdir(), "sandgate-rules-"));
  const config = JSON.parse(readFileSync("biome.json", "utf8"));
  writeFileSync(join(project, "biome.json"), JSON.stringify({ ...config, vcs: undefined }));
});

afterEach(() => rmSync(project, { recursive: true }));

/** What `npm run check` has against a file that imports something. */
function faults(file: string, specifier: string): string[] {
  const path = join(project, file);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `export * from ${JSON.stringify(specifier)};\n`);
  const { stdout } = spawnSync("biome", ["lint", "--reporter=json"], { cwd: project });
  const { diagnostics } = JSON.parse(String(stdout));
  return diagnostics.map(({ category }: { category: string }) => category);
}

test.each([
  ["gateway/app.ts", "../services/sandbox/service.ts"],
  ["gateway/v1/sandboxes/routes.ts", "../../../prisma/database.ts"],
  ["runtime/log.ts", "../gateway/app.ts"],
  ["runtime/rpc/server.ts", "../../services/sandbox/service.ts"],
  ["runtime/env.ts", "../prisma/migrate.ts"],
  ["cli/api.ts", "../services/organization/service.ts"],
  ["cli/commands/keys.ts", "../../prisma/database.ts"],
  ["services/sandbox/service.ts", "../orchestrator/service.ts"],
  ["services/sandbox/store.ts", "../organization/store.ts"],
  ["services/sandbox/service.ts", "../../prisma/database.ts"],
  ["services/sandbox/domain/spec.ts", "../../../prisma/database.ts"],
  ["services/sandbox/domain/spec.ts", "../../../proto/gen/sandbox/v1/spec_pb.ts"],
  ["services/sandbox/domain/spec.ts", "fastify"],
  ["services/sandbox/domain/spec.ts", "../../organization/domain/organization.ts"],
  ["services/orchestrator/engines/docker/call.ts", "../../store.ts"],
  ["services/orchestrator/engines/simulated.ts", "pg"],
])("%s may not import %s", (file, specifier) => {
  expect(faults(file, specifier)).toEqual(["lint/style/noRestrictedImports"]);
});

test.each([
  ["gateway/app.ts", "../proto/gen/sandbox/v1/sandbox_service_pb.ts"],
  ["gateway/app.ts", "../runtime/errors.ts"],
  ["runtime/rpc/server.ts", "../../proto/gen/grpc/health/v1/health_pb.ts"],
  ["services/sandbox/store/read.ts", "../../../prisma/database.ts"],
  ["services/orchestrator/reports.ts", "../../proto/gen/sandbox/v1/sandbox_service_pb.ts"],
  ["services/sandbox/domain/spec.ts", "../../../runtime/errors.ts"],
  ["cli/api.ts", "../app/operator.ts"],
  ["app/services.ts", "../services/sandbox/start.ts"],
])("%s may import %s", (file, specifier) => {
  expect(faults(file, specifier)).toEqual([]);
});
