import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Body, body } from "./support/bodies.ts";
import { faultPaths, type Gateway, openGateway } from "./support/gateway.ts";

let gateway: Gateway;
beforeAll(async () => {
  gateway = await openGateway();
});
afterAll(() => gateway.close());

const image = (reference: unknown): Body => ({ image: { type: "oci", reference } });
const labels = (entries: Body): Body => body({ labels: entries });
const runtime = (more: Body): Body => body({ runtime: more });
const rlimit = (more: Body): Body =>
  body({ rlimits: [{ resource: "nofile", soft: 1, hard: 2, ...more }] });
const manyLabels = (n: number): Body =>
  Object.fromEntries(Array.from({ length: n }, (_, i) => [`k${i}`, "v"]));
const path255 = "a".repeat(255);
const hex = (n: number) => "a".repeat(n);

const refused: [string, Body, string[]][] = [
  ["name with a space", body({ name: "a b" }), ["name"]],
  ["name that begins with a dot", body({ name: ".a" }), ["name"]],
  ["name that ends in a line break", body({ name: "a\n" }), ["name"]],
  ["name of 129", body({ name: "a".repeat(129) }), ["name"]],
  ["name that is a number", body({ name: 1 }), ["name"]],
  ["slug of 2", body({ slug: "ab" }), ["slug"]],
  ["slug of 64", body({ slug: "a".repeat(64) }), ["slug"]],
  ["slug with two hyphens", body({ slug: "a--b" }), ["slug"]],
  ["slug that ends in a hyphen", body({ slug: "ab-" }), ["slug"]],
  ["slug in upper case", body({ slug: "Abc" }), ["slug"]],
  ["empty slug", body({ slug: "" }), ["slug"]],

  ["no image", {}, ["image"]],
  ["image null", { image: null }, ["image"]],
  ["image as text", { image: "alpine" }, ["image"]],
  ["image without fields", { image: {} }, ["image.type", "image.reference"]],
  ["image of another type", { image: { type: "disk", reference: "a" } }, ["image.type"]],
  ["image type in upper case", { image: { type: "OCI", reference: "a" } }, ["image.type"]],
  ["reference null", image(null), ["image.reference"]],
  ["empty reference", image(""), ["image.reference"]],
  ["reference in upper case", image("Alpine"), ["image.reference"]],
  ["reference with a space", image("al pine"), ["image.reference"]],
  ["reference with an empty tag", image("alpine:"), ["image.reference"]],
  ["reference with a tag of 129", image(`alpine:${hex(129)}`), ["image.reference"]],
  ["reference with a short digest", image(`alpine@sha256:${hex(63)}`), ["image.reference"]],
  ["reference with a URL scheme", image("https://example.com/a"), ["image.reference"]],
  ["reference with a name of 256", image(`${path255}a`), ["image.reference"]],
  ["reference that is far too long", image(hex(100_000)), ["image.reference"]],
  ["source without reference", { source: "oci" }, ["reference"]],
  ["reference without source", { reference: "alpine" }, ["source"]],
  ["another source", { source: "disk", reference: "alpine" }, ["source"]],
  ["older form with a bad reference", { source: "oci", reference: "A" }, ["reference"]],
  ["both forms", body({ source: "oci", reference: "alpine" }), ["source", "reference"]],

  ["env as an object", body({ env: { A: "1" } }), ["env"]],
  ["env item as text", body({ env: ["A=1"] }), ["env[0]"]],
  ["env item null", body({ env: [null] }), ["env[0]"]],
  ["env without fields", body({ env: [{}] }), ["env[0].key", "env[0].value"]],
  ["env empty key", body({ env: [{ key: "", value: "" }] }), ["env[0].key"]],
  ["env key with =", body({ env: [{ key: "A=B", value: "" }] }), ["env[0].key"]],
  ["env key with NUL", body({ env: [{ key: "A\0", value: "" }] }), ["env[0].key"]],
  ["env key MSB_", body({ env: [{ key: "MSB_X", value: "" }] }), ["env[0].key"]],
  ["env value with NUL", body({ env: [{ key: "A", value: "\0" }] }), ["env[0].value"]],
  ["env value with half a pair", body({ env: [{ key: "A", value: "\ud800" }] }), ["env[0].value"]],
  ["env value null", body({ env: [{ key: "A", value: null }] }), ["env[0].value"]],
  ["env value number", body({ env: [{ key: "A", value: 5 }] }), ["env[0].value"]],

  ["labels as an array", body({ labels: [] }), ["labels"]],
  ["label that is a number", labels({ foo: 1 }), ["labels.foo"]],
  ["label that is null", labels({ foo: null }), ["labels.foo"]],
  ["label with an empty key", labels({ "": "x" }), ['labels[""]']],
  ["label key with a space", labels({ "a b": 1 }), ['labels["a b"]']],
  ["label key that looks like an index", labels({ 0: 1 }), ['labels["0"]']],
  ["label key with / and ~", labels({ "a/b~c": 1 }), ['labels["a/b~c"]']],
  ["label key beyond ASCII", labels({ é: 1 }), ['labels["\\u00e9"]']],
  ["label key of 129 bytes", labels({ [hex(129)]: "" }), [`labels.${hex(129)}`]],
  ["label key of a megabyte", labels({ [hex(2 ** 20)]: "" }), [`labels["${hex(253)}..."]`]],
  [
    "label key of 65 letters and 130 bytes",
    labels({ ["é".repeat(65)]: "" }),
    [`labels["${"\\u00e9".repeat(65)}"]`],
  ],
  ["label value of 1025 bytes", labels({ a: hex(1025) }), ["labels.a"]],
  ["label value of 513 letters and 1026 bytes", labels({ a: "é".repeat(513) }), ["labels.a"]],
  ["label with NUL", labels({ a: "\0", "b\0": "" }), ['labels["b\\u0000"]', "labels.a"]],
  ["65 labels", labels(manyLabels(65)), ["labels"]],
  [
    "reserved label prefixes",
    labels({ "sandbox.a": "", "microsandbox.b": "", "service.c": "" }),
    ['labels["sandbox.a"]', 'labels["microsandbox.b"]', 'labels["service.c"]'],
  ],

  ["resources null fields of wrong type", body({ resources: 1 }), ["resources"]],
  ["no vcpus", body({ resources: { vcpus: 0 } }), ["resources.vcpus"]],
  ["no memory", body({ resources: { memory_mib: 0 } }), ["resources.memory_mib"]],
  ["negative vcpus", body({ resources: { vcpus: -1 } }), ["resources.vcpus"]],
  ["vcpus as text", body({ resources: { vcpus: "5" } }), ["resources.vcpus"]],
  ["half a vcpu", body({ resources: { vcpus: 0.5 } }), ["resources.vcpus"]],
  ["vcpus beyond int32", body({ resources: { vcpus: 2 ** 31 } }), ["resources.vcpus"]],
  ["negative disk", body({ resources: { disk_size_mib: -1 } }), ["resources.disk_size_mib"]],

  ["cmd as text", runtime({ cmd: "ls" }), ["runtime.cmd"]],
  ["cmd with a number", runtime({ cmd: ["a", 1] }), ["runtime.cmd[1]"]],
  ["cmd with null", runtime({ cmd: [null] }), ["runtime.cmd[0]"]],
  ["cmd with NUL", runtime({ cmd: ["a\0"] }), ["runtime.cmd[0]"]],
  ["entrypoint with a number", runtime({ entrypoint: [1] }), ["runtime.entrypoint[0]"]],
  ["shell, user", runtime({ shell: 1, user: 1000 }), ["runtime.shell", "runtime.user"]],
  ["relative workdir", runtime({ workdir: "src" }), ["runtime.workdir"]],
  ["empty workdir", runtime({ workdir: "" }), ["runtime.workdir"]],
  ["another log level", runtime({ log_level: "warning" }), ["runtime.log_level"]],
  ["scripts as an array", runtime({ scripts: [] }), ["runtime.scripts"]],
  ["script that is null", runtime({ scripts: { a: null } }), ["runtime.scripts.a"]],
  [
    "script names that are no file names",
    runtime({ scripts: { "": "", ".": "", "..": "", "a/b": "", [hex(256)]: "" } }),
    ["", ".", "..", "a/b"]
      .map((name) => `runtime.scripts["${name}"]`)
      .concat(`runtime.scripts.${hex(256)}`),
  ],
  ["hostname in runtime", runtime({ hostname: "h" }), ["runtime.hostname"]],
  ["unknown field in runtime, null", runtime({ hostname: null }), ["runtime.hostname"]],

  [
    "rlimit without fields",
    body({ rlimits: [{}] }),
    ["rlimits[0].resource", "rlimits[0].soft", "rlimits[0].hard"],
  ],
  ["rlimit of another resource", rlimit({ resource: "Nofile" }), ["rlimits[0].resource"]],
  ["rlimit soft above hard", rlimit({ soft: 3 }), ["rlimits[0].soft"]],
  ["rlimit negative", rlimit({ soft: -1 }), ["rlimits[0].soft"]],
  ["rlimit beyond 2^53 - 1", rlimit({ hard: 2 ** 53 }), ["rlimits[0].hard"]],

  ["init without cmd", body({ init: {} }), ["init.cmd"]],
  ["init relative", body({ init: { cmd: "init" } }), ["init.cmd"]],
  ["init args", body({ init: { cmd: "auto", args: [1] } }), ["init.args[0]"]],
  ["init env as objects", body({ init: { cmd: "auto", env: [{ key: "a" }] } }), ["init.env[0]"]],
  ["init env of one", body({ init: { cmd: "auto", env: [["a"]] } }), ["init.env[0]"]],
  ["init env of three", body({ init: { cmd: "auto", env: [["a", "b", "c"]] } }), ["init.env[0]"]],
  [
    "init env key",
    body({ init: { cmd: "auto", env: [["a=", 1]] } }),
    ["init.env[0][0]", "init.env[0][1]"],
  ],

  ["another pull policy", body({ pull_policy: "Always" }), ["pull_policy"]],
  ["another security profile", body({ security_profile: "none" }), ["security_profile"]],
  ["ephemeral as text", body({ lifecycle: { ephemeral: "true" } }), ["lifecycle.ephemeral"]],
  [
    "negative idle timeout",
    body({ lifecycle: { idle_timeout_secs: -1 } }),
    ["lifecycle.idle_timeout_secs"],
  ],
  [
    "duration beyond 2^53 - 1",
    body({ lifecycle: { max_duration_secs: 2 ** 53 } }),
    ["lifecycle.max_duration_secs"],
  ],

  ["registry without mode", body({ registry: {} }), ["registry.mode"]],
  ["registry as text", body({ registry: "auto" }), ["registry"]],
  ["another registry mode", body({ registry: { mode: "none" } }), ["registry.mode"]],
  ["registry mode null", body({ registry: { mode: null } }), ["registry.mode"]],
  [
    "specific without credential",
    body({ registry: { mode: "specific" } }),
    ["registry.credential_id"],
  ],
  [
    "inline without credentials",
    body({ registry: { mode: "inline" } }),
    ["registry.username", "registry.password"],
  ],
];

describe("a create is refused", () => {
  test.each(refused)("%s", async (_name, sent, paths) => {
    const answer = await gateway.call("POST", "/v1/sandboxes", sent);
    expect(faultPaths(answer).sort()).toEqual([...paths].sort());
  });

  test("with the path of a repeated fault once", async () => {
    const answer = await gateway.call("POST", "/v1/sandboxes", { image: null });
    expect(faultPaths(answer)).toEqual(["image"]);
  });

  test("for a number that JSON would round", async () => {
    const text =
      '{"image":{"type":"oci","reference":"a"},"lifecycle":{"max_duration_secs":9007199254740993}}';
    const answer = await gateway.call("POST", "/v1/sandboxes", text);
    expect(faultPaths(answer)).toEqual(["lifecycle.max_duration_secs"]);
  });

  test("for a label that would be the prototype, which stays as it is", async () => {
    const text =
      '{"image":{"type":"oci","reference":"a"},"labels":{"__proto__":"x"},"runtime":{"scripts":{"__proto__":"y"}}}';
    const answer = await gateway.call("POST", "/v1/sandboxes", text);
    expect(faultPaths(answer)).toEqual(["labels.__proto__", "runtime.scripts.__proto__"]);
    expect(Object.keys(Object.prototype)).toEqual([]);
  });

  test("before anything is asked of a service", () => {
    expect(gateway.services.calls).toEqual([]);
  });
});

const accepted: [string, Body][] = [
  ["the least", body()],
  ["empty name", body({ name: "" })],
  ["name of one", body({ name: "1" })],
  ["name of 128", body({ name: "a".repeat(128) })],
  ["slug of 3 and of 63", body({ slug: "a-1" })],
  ["slug of 63", body({ slug: "a".repeat(63) })],
  ["older form", { source: "oci", reference: "alpine" }],
  [
    "reference with everything",
    image(`Host-1.example:5000/a/b_c/d__e-f.g:V1_2.3@sha256:${hex(64)}`),
  ],
  ["reference of an IPv6 host", image("[2001:db8::1]:5000/a")],
  ["reference of localhost", image("localhost/a")],
  ["reference with a name of 255", image(path255)],
  ["empty lists", body({ env: [], rlimits: [], mounts: [], patches: [] })],
  ["64 labels", labels(manyLabels(64))],
  ["label key of 128 bytes and value of 1024", labels({ ["é".repeat(64)]: "é".repeat(512) })],
  ["empty label value", labels({ a: "" })],
  ["labels with names of Object.prototype", labels({ constructor: "a", toString: "b" })],
  ["largest int32", body({ resources: { disk_size_mib: 2 ** 31 - 1 } })],
  ["no disk", body({ resources: { disk_size_mib: 0 } })],
  ["integers with a fraction of nothing", body({ resources: { vcpus: 2.0 } })],
  ["empty overrides", runtime({ cmd: [], entrypoint: [] })],
  ["script name of 255", runtime({ scripts: { [hex(255)]: "" } })],
  ["soft equal to hard", rlimit({ soft: 2 })],
  ["largest int64", rlimit({ hard: 2 ** 53 - 1 })],
  ["durations of nothing", body({ lifecycle: { idle_timeout_secs: 0, max_duration_secs: 0 } })],
  ["init auto", body({ init: { cmd: "auto" } })],
  ["anonymous", body({ registry: { mode: "anonymous" } })],
  ["specific", body({ registry: { mode: "specific", credential_id: "c-1" } })],
];

describe("a create is taken", () => {
  test.each(accepted)("%s", async (_name, sent) => {
    expect(await gateway.call("POST", "/v1/sandboxes", sent)).toMatchObject({ status: 200 });
  });
});

describe("null", () => {
  const optional = [
    ...["name", "slug", "source", "reference", "env", "labels", "resources", "runtime", "rlimits"],
    ...["mounts", "network", "patches", "init", "pull_policy", "security_profile", "lifecycle"],
    "registry",
  ];
  test.each(optional)("means absent for %s", async (field) => {
    const { body: created, status } = await gateway.call(
      "POST",
      "/v1/sandboxes",
      body({ [field]: null }),
    );
    expect({ status, image: created.spec?.image }).toEqual({ status: 200, image: "alpine" });
  });

  const nested: Body[] = [
    { resources: { vcpus: null, memory_mib: null, disk_size_mib: null } },
    {
      runtime: Object.fromEntries(
        ["cmd", "entrypoint", "shell", "user", "workdir", "log_level", "scripts"].map((field) => [
          field,
          null,
        ]),
      ),
    },
    { lifecycle: { ephemeral: null, idle_timeout_secs: null, max_duration_secs: null } },
    { init: { cmd: "auto", args: null, env: null } },
  ];
  test.each(nested)("means absent inside %j", async (more) => {
    const { body: created } = await gateway.call("POST", "/v1/sandboxes", body(more));
    const { body: plain } = await gateway.call("POST", "/v1/sandboxes", body());
    expect(created.spec).toEqual(plain.spec);
  });
});

describe("unknown fields", () => {
  test("are ignored and named where nothing depends on them", async () => {
    const { status, headers } = await gateway.call(
      "POST",
      "/v1/sandboxes",
      body({
        image: { type: "oci", reference: "a", platform: "x" },
        future: { a: 1 },
        "a,b": null,
        env: [{ key: "A", value: "1", secret: true }],
        resources: { gpus: 1 },
        rlimits: [{ resource: "cpu", soft: 1, hard: 1, unit: "s" }],
        lifecycle: { restart: "always" },
        init: { cmd: "auto", x: 1 },
        registry: { mode: "auto", credential_id: "x" },
      }),
    );
    expect(status).toBe(200);
    expect(headers["x-ignored-fields"]?.split(", ").sort()).toEqual([
      '["a,b"]',
      "env[0].secret",
      "future",
      "image.platform",
      "init.x",
      "lifecycle.restart",
      "registry.credential_id",
      "resources.gpus",
      "rlimits[0].unit",
    ]);
  });

  test("do not make the header longer than clients take, nor break it", async () => {
    const many = Object.fromEntries(
      Array.from({ length: 1000 }, (_, i) => [`field-${i}\r\nX-Evil: é`, i]),
    );
    const { status, headers } = await gateway.call("POST", "/v1/sandboxes", body(many));
    expect(status).toBe(200);
    expect(headers["x-evil"]).toBeUndefined();
    expect(headers["x-ignored-fields"]?.length).toBeLessThan(5000);
    expect(headers["x-ignored-fields"]).toMatch(/^\["field-0\\r\\nX-Evil: \\u00e9"\], .*, \.\.\.$/);
  });

  test("are data, whatever they are called", async () => {
    const text =
      '{"source":"oci","reference":"a","__proto__":{"name":"x"},"resources":{"__proto__":{"vcpus":9}}}';
    const { headers, body: created } = await gateway.call("POST", "/v1/sandboxes", text);
    expect(headers["x-ignored-fields"]).toBe("__proto__, resources.__proto__");
    expect(created).toMatchObject({ spec: { resources: { vcpus: 1 } } });
  });

  test("are named for start, stop and PATCH as well", async () => {
    const { id } = gateway.services.add();
    for (const [method, verb] of [
      ["POST", "/start"],
      ["POST", "/stop"],
      ["PATCH", ""],
    ] as const) {
      const { headers } = await gateway.call(method, `/v1/sandboxes/${id}${verb}`, { why: 1 });
      expect(headers["x-ignored-fields"]).toBe("why");
    }
  });

  test("of which there are none leave no header", async () => {
    const { headers } = await gateway.call("POST", "/v1/sandboxes", body());
    expect(headers).not.toHaveProperty("x-ignored-fields");
  });
});

describe("many faults", () => {
  test("are all named, in every part of the request", async () => {
    const answer = await gateway.call("POST", "/v1/sandboxes?wait_timeout=x&start=1", {
      ...body({ name: " ", slug: 1, pull_policy: "x" }),
    });
    expect(faultPaths(answer).sort()).toEqual([
      "name",
      "pull_policy",
      "slug",
      "start",
      "wait_timeout",
    ]);
  });

  test("are named to the thousandth", async () => {
    const env = Array.from({ length: 1500 }, () => ({ key: "", value: "" }));
    const paths = faultPaths(await gateway.call("POST", "/v1/sandboxes", body({ env })));
    expect(paths).toEqual(Array.from({ length: 1000 }, (_, i) => `env[${i}].key`));
  });

  test("of a very large body are not looked for beyond the first", async () => {
    const env = Array.from({ length: 300_000 }, () => 0);
    const paths = faultPaths(await gateway.call("POST", "/v1/sandboxes", body({ env, name: " " })));
    expect(paths).toHaveLength(1);
  });

  test("are found beside a large text", async () => {
    const patches = [{ type: "text", path: "x", content: "x".repeat(500_000) }];
    const answer = await gateway.call("POST", "/v1/sandboxes", body({ patches, name: " " }));
    expect(faultPaths(answer).sort()).toEqual(["name", "patches[0].path"]);
  });

  test("are found beside a large file", async () => {
    const content = new Array(500_000).fill(7);
    const patches = [{ type: "file", path: "x", content: [...content, 256] }];
    const paths = faultPaths(
      await gateway.call("POST", "/v1/sandboxes", body({ patches, name: " " })),
    );
    expect(paths.sort()).toEqual(["name", "patches[0].content[500000]", "patches[0].path"]);
  });
});
