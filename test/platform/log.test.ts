import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createLogger } from "../../runtime/log.ts";
import { type Spans, setSpans } from "../../runtime/tracing/spans.ts";

function capture(level: "info" | "warn", role = "gateway") {
  const lines: Record<string, unknown>[] = [];
  const log = createLogger({ level, format: "json" }, role, {
    write: (line: string) => lines.push(JSON.parse(line)),
  });
  return { log, lines };
}

test("a line is a JSON object with its fields, and its time in RFC 3339", () => {
  const { log, lines } = capture("info");
  log.child({ request_id: "r1" }).info({ org_id: "o1" }, "hello");
  expect(lines).toEqual([
    {
      level: "info",
      time: expect.stringMatching(/Z$/),
      role: "gateway",
      request_id: "r1",
      org_id: "o1",
      msg: "hello",
    },
  ]);
});

test("keys do not get into it", () => {
  const { log, lines } = capture("info");
  const headers = { authorization: "Bearer sgt_live_secret" };
  log.info({ ...headers, headers, req: { headers } }, "x");
  expect(JSON.stringify(lines)).not.toContain("secret");
});

test("LOG_LEVEL is obeyed", () => {
  const { log, lines } = capture("warn");
  log.info("quiet");
  log.warn("loud");
  expect(lines.map(({ msg }) => msg)).toEqual(["loud"]);
});

test("what is traced says in which trace", () => {
  const { log, lines } = capture("info");
  setSpans({ traceId: () => "t1" } as Spans);
  try {
    log.info("traced");
  } finally {
    setSpans(undefined);
  }
  log.info("not");
  expect(lines.map(({ trace_id }) => trace_id)).toEqual(["t1", undefined]);
});

test("LOG_FORMAT is obeyed, whatever it is written to", { timeout: 60_000 }, () => {
  const script = (format: string) =>
    `import { createLogger } from "./runtime/log.ts";
     createLogger({ level: "info", format: "${format}" }, "all").info({ org_id: "o1" }, "hello");`;
  const said = (format: string) =>
    execFileSync(process.execPath, ["--input-type=module-typescript", "-e", script(format)], {
      encoding: "utf8",
      cwd: join(import.meta.dirname, "../.."),
    });
  expect(JSON.parse(said("auto"))).toMatchObject({ level: "info", role: "all", msg: "hello" });
  expect(JSON.parse(said("json"))).toMatchObject({ level: "info", role: "all", msg: "hello" });
  expect(said("pretty")).toMatch(/INFO.*hello\n\s+org_id: "o1"\n$/);
});
