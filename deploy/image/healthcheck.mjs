// Asks the admin port of the program in this container whether it lives (/healthz) or can serve (/readyz). Plain
// JavaScript, and nothing but Node: it starts every few seconds.
import { request } from "node:http";

const LIMIT_MS = 4_000;
const ANY_TO_OWN = { "0.0.0.0": "127.0.0.1", "::": "::1" };

const { ADMIN_HOST: host = "127.0.0.1", ADMIN_PORT: port } = process.env;
const path = process.argv[2] ?? "/healthz";

function fail(message) {
  console.error(message);
  process.exitCode = 1;
}

function ask() {
  const asked = request({ hostname: ANY_TO_OWN[host] ?? host, port, path, timeout: LIMIT_MS });
  asked.on("response", (answer) => {
    answer.pipe(process.stdout);
    if (answer.statusCode !== 200) process.exitCode = 1;
  });
  asked.on("timeout", () => asked.destroy(new Error(`no answer within ${LIMIT_MS} ms`)));
  asked.on("error", ({ message }) => fail(`${path} of port ${port}: ${message}`));
  asked.end();
}

if (port) ask();
else fail("ADMIN_PORT is not set: there is nothing to ask");
