import { expect, test } from "vitest";
import { createLogger } from "../../runtime/log.ts";

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
