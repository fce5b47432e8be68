import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { callCli, spawnCli } from "../support/cli.ts";
import { freePort } from "../support/ports.ts";
import { apiOf, image, type Program, startProgram } from "../support/program.ts";

const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
const ID = expect.stringMatching(/^[0-9a-f-]{36}$/);
const NO_LIMITS = {
  max_sandboxes: null,
  max_concurrent_ephemeral_running: null,
  max_concurrent_persistent_running: null,
  max_vcpus_per_sandbox: null,
  max_memory_mib_per_sandbox: null,
  max_disk_size_mib_per_sandbox: null,
  max_uptime_minutes_per_sandbox: null,
  max_total_storage_gib: null,
  included_storage_gib: null,
  included_disk_gib_hours: null,
  included_vcpu_hours: null,
  included_memory_gib_hours: null,
};

let program: Program;
let server: string;

beforeAll(async () => {
  const port = await freePort();
  server = `http://127.0.0.1:${port}`;
  program = await startProgram({ RPC_PORT: String(port) });
});
afterAll(() => program.close());

describe.each(["in process", "over RPC"])("%s", { timeout: 60_000 }, (way) => {
  const remote = way === "over RPC";
  const org = remote ? "far" : "near";
  let env: Record<string, string>;
  let far: string[];
  beforeAll(() => {
    env = remote ? { DATA_DIR: program.dataDir } : { DATABASE_URL: program.databaseUrl };
    far = remote ? ["--server", server] : [];
  });
  const run = (...args: string[]) => callCli(env, ...args, ...far);

  /** @returns what a command that works prints with `--json` */
  // What each command prints; a test says what it expects of it.
  // biome-ignore lint/suspicious/noExplicitAny: see above
  async function json(...args: string[]): Promise<any> {
    const ended = await run(...args, "--json");
    expect(ended).toMatchObject({ code: 0, stderr: "" });
    return JSON.parse(ended.stdout);
  }

  /** @returns what a command says that is refused */
  async function refusal(...args: string[]): Promise<unknown> {
    const ended = await run(...args, "--json");
    expect(ended).toMatchObject({ code: 1, stdout: "" });
    return JSON.parse(ended.stderr).error;
  }

  test("organizations are made, listed, suspended and resumed", async () => {
    const made = await json("organizations", "create", "--name", `Team ${org}`, "--slug", org);
    expect(made).toEqual({
      id: ID,
      name: `Team ${org}`,
      slug: org,
      mfa_required: false,
      suspended_at: null,
      created_at: TIME,
      updated_at: TIME,
    });
    expect(await refusal("organizations", "create", "--name", "x", "--slug", org)).toMatchObject({
      reason: "NAME_ALREADY_EXISTS",
    });
    const suspended = await json("organizations", "suspend", made.id);
    expect(suspended).toMatchObject({ id: made.id, suspended_at: TIME });
    expect((await json("organizations", "list")).data).toContainEqual(suspended);
    expect(await json("organizations", "resume", org)).toMatchObject({ suspended_at: null });
    expect(await refusal("organizations", "suspend", "nosuch")).toEqual({
      reason: "ORG_NOT_FOUND",
      message: "there is no organization 'nosuch'",
      details: {},
    });
  });

  test("a key is printed alone, works at once, and until its rotation's overlap or its revocation", async () => {
    // As a script does it.
    const args = ["keys", "create", org, "--name", "ci", "--expires", "30d"];
    const made = await spawnCli(env, ...args, ...far);
    expect(made.code).toBe(0);
    expect(made.stdout).toMatch(/^sgt_live_\w{38}\n$/);
    expect(made.stderr).toContain("shown this once");
    const works = async (key: string) =>
      (await apiOf(program.url, key)("GET", "/v1/me/org")).status === 200;
    const secret = made.stdout.trim();
    expect(await works(secret)).toBe(true);
    const [key] = (await json("keys", "list", org)).data;
    expect(key).toEqual({
      id: ID,
      name: "ci",
      prefix: "sgt_live_",
      last_four: secret.slice(-4),
      status: "good",
      created_at: TIME,
      last_used_at: key.last_used_at,
      expires_at: TIME,
      revoked_at: null,
      replaced_by: null,
    });
    const rotated = await json("keys", "rotate", org, key.id, "--overlap", "1h");
    expect(rotated).toMatchObject({
      secret: expect.stringMatching(/^sgt_live_/),
      status: "good",
      replaced: { id: key.id, status: "rotated", replaced_by: rotated.id },
    });
    expect([await works(secret), await works(rotated.secret)]).toEqual([true, true]);
    expect(await json("keys", "revoke", org, key.id)).toMatchObject({ status: "revoked" });
    await expect.poll(() => works(secret)).toBe(false);
    expect(await works(rotated.secret)).toBe(true);
    expect(await refusal("keys", "rotate", org, key.id)).toMatchObject({
      reason: "INVALID_STATE_TRANSITION",
    });
    expect(await refusal("keys", "revoke", org, "x")).toMatchObject({
      reason: "INVALID_REQUEST",
      details: { errors: [{ field: "api_key_id", message: expect.any(String) }] },
    });
  });

  test("members are added, listed and removed, by id or email", async () => {
    const add = (email: string) =>
      json("members", "add", org, "--email", email, "--role", "admin", "--name", "Änne");
    const member = await add(`a@${org}.example`);
    expect(member).toEqual({
      id: ID,
      user_id: ID,
      email: `a@${org}.example`,
      display_name: "Änne",
      avatar_url: null,
      role: "admin",
      joined_at: TIME,
    });
    expect(await json("members", "list", org)).toEqual({ data: [member] });
    expect(await json("members", "remove", org, `A@${org}.example`)).toEqual({ id: member.id });
    expect(await refusal("members", "remove", org, member.id)).toMatchObject({
      reason: "MEMBER_NOT_FOUND",
    });
  });

  test("a plan keeps what is not named; it is assigned, and overrides win", async () => {
    const plan = `plan-${org}`;
    const money = ["--price", "vcpu_hour=0.05", "--currency", "EUR"];
    await json("plans", "set", plan, "--limit", "max_sandboxes=20", ...money, "--hard-cap");
    const kept = {
      name: plan,
      is_default: false,
      hard_cap: true,
      currency: "EUR",
      limits: { ...NO_LIMITS, max_sandboxes: 20, max_vcpus_per_sandbox: 4 },
      prices: {
        vcpu_hour: "0.05",
        memory_gib_hour: "0",
        disk_gib_hour: "0",
        storage_gib_hour: "0",
      },
    };
    expect(await json("plans", "set", plan, "--limit", "max_vcpus_per_sandbox=4")).toEqual(kept);
    expect(await json("plans", "show", plan)).toEqual(kept);
    const freed = await json(
      "plans",
      "set",
      plan,
      "--limit",
      "max_sandboxes=unlimited",
      "--no-hard-cap",
    );
    expect(freed).toMatchObject({ hard_cap: false, limits: { max_sandboxes: null } });
    expect((await json("plans", "list")).data).toContainEqual(freed);
    expect(await refusal("plans", "assign", org, "nosuch")).toMatchObject({
      reason: "PLAN_NOT_FOUND",
    });
    expect(await json("plans", "assign", org, plan)).toEqual({
      plan,
      by_default: false,
      overrides: {},
    });
    const overrides = { max_sandboxes: 5, max_vcpus_per_sandbox: null };
    const set = ["overrides", "set", org, "max_sandboxes=5", "max_vcpus_per_sandbox=unlimited"];
    expect(await json(...set)).toEqual({ plan, by_default: false, overrides });
    expect(await json("overrides", "show", org)).toMatchObject({ overrides });
    expect(await json("quotas", org)).toMatchObject({
      ...NO_LIMITS,
      max_sandboxes: 5,
      // It has a price, and is not hard-capped any more.
      included_vcpu_hours: 0,
      total_sandboxes: 0,
      hard_cap: false,
      is_suspended: false,
    });
    expect(
      await json("overrides", "clear", org, "max_sandboxes", "max_vcpus_per_sandbox"),
    ).toMatchObject({
      overrides: {},
    });
    expect(await json("plans", "assign", org)).toMatchObject({
      plan: "unlimited",
      by_default: true,
    });
  });

  test("usage, as a sum and by sandbox", async () => {
    const name = `used-${org}`;
    await program.api("POST", "/v1/sandboxes?start=true&wait_for=running", { ...image(), name });
    const sum = await json("usage", "default", "--since", "1d");
    expect(sum).toMatchObject({
      period_start: TIME,
      period_end: TIME,
      currency: "USD",
      total_cents: 0,
    });
    expect(sum.line_items.map((line: { name: string }) => line.name)).toContain("vcpu");
    const { rows, sandboxes } = await json("usage", "default", "--by", "sandbox", "--since", "1d");
    expect(sandboxes).toContainEqual({ id: ID, name, slug: expect.any(String) });
    expect(rows[0]).toMatchObject({ sandbox_id: ID, day: TIME, vcpu_seconds: expect.any(Number) });
    expect(await json("usage", "default", "--by", "volume")).toEqual({ rows: [], volumes: [] });
    expect(await refusal("usage", "default", "--since", "93d")).toMatchObject({
      reason: "INVALID_REQUEST",
    });
  });

  test("the audit log names the operator; it is filtered, and paged to its end", async () => {
    const { data, has_more } = await json("events", "list", org, "--all");
    expect(has_more).toBe(false);
    const types = data.map(({ event_type }: { event_type: string }) => event_type);
    for (const type of ["api_key_created", "api_key_rotated", "member_removed", "quota_changed"])
      expect(types).toContain(type);
    for (const { actor } of data)
      expect(actor).toEqual({ kind: "system", code: "operator", label: "Operator" });
    const [newest] = data;
    expect(await json("events", "list", org, "--limit", "1")).toEqual({
      data: [newest],
      has_more: true,
    });
    expect(await json("events", "show", org, newest.id)).toEqual(newest);
    // As exact as it was told, it finds itself.
    const window = ["--since", newest.timestamp, "--until", newest.timestamp];
    expect((await json("events", "list", org, ...window)).data).toEqual([newest]);
    expect((await run("events", "list", org, "--type", "api_key_created")).stdout).toMatch(
      /^TIMESTAMP +EVENT TYPE +ABOUT +ACTOR +ID\n\S+Z +api_key_created +\S+ +system: Operator /,
    );
    const filtered = await json("events", "list", org, "--type", "org_suspended", "--since", "1h");
    expect(filtered.data).toHaveLength(1);
  });
});

test("people read tables", async () => {
  const { stdout } = await callCli({ DATABASE_URL: program.databaseUrl }, "organizations", "list");
  const [headings, first] = stdout.split("\n");
  expect(headings).toMatch(/^SLUG +NAME +ID +CREATED AT +SUSPENDED AT$/);
  expect(first).toMatch(/^default +Default +[0-9a-f-]{36} +\S+Z +-$/);
});

test("a server that is away, or does not take the token, is told apart", async () => {
  const away = [
    "organizations",
    "list",
    "--json",
    "--server",
    `http://127.0.0.1:${await freePort()}`,
  ];
  const token = { SERVICE_TOKEN: "not-the-service-token" };
  expect(await callCli(token, ...away)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("SERVICE_UNAVAILABLE"),
  });
  expect(await callCli(token, "organizations", "list", "--json", "--server", server)).toMatchObject(
    {
      code: 1,
      stderr: expect.stringContaining("SERVICE_TOKEN_REFUSED"),
    },
  );
  expect(
    await callCli({ DATA_DIR: "/nonexistent" }, "organizations", "list", "--server", server),
  ).toMatchObject({ code: 1, stderr: expect.stringContaining("There is no service token") });
});
