// Whether the program in this container lives (/healthz) or can serve (/readyz): asks its admin port, or
// the gateway's own where there is no admin port. Plain JavaScript: it starts every few seconds.
import { request } from "node:http";

const LIMIT_MS = 4_000;
const { ADMIN_HOST, ADMIN_PORT, HOST, PORT } = process.env;

const { hostname, port } = ADMIN_PORT
  ? { hostname: reachable(ADMIN_HOST), port: ADMIN_PORT }
  : { hostname: reachable(HOST), port: PORT || "8080" };
const path = process.argv[2] ?? "/healthz";

const asked = request({ hostname, port, path, timeout: LIMIT_MS }, (answer) => {
  answer.pipe(process.stdout);
  process.exitCode = answer.statusCode === 200 ? 0 : 1;
});
asked.on("timeout", () => asked.destroy(new Error(`no answer within ${LIMIT_MS} ms`)));
asked.on("error", ({ message }) => {
  console.error(`${hostname}:${port}${path}: ${message}`);
  process.exitCode = 1;
});
asked.end();

/** Where a listener on `host` is reached from here. */
function reachable(host) {
  if (!host || host === "0.0.0.0") return "127.0.0.1";
  return host === "::" ? "::1" : host;
}
