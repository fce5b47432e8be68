import { expect, test } from "vitest";
import { refuseExposure } from "../../app/exposure.ts";
import { StartupError } from "../../runtime/errors.ts";

const tls = { prefix: "TLS", cert: "/c", key: "/k", ca: "/ca" } as const;
const serviceToken = "0123456789abcdef";

async function expose(host: string, credentials: { serviceToken?: string; tls?: typeof tls } = {}) {
  const warnings: unknown[] = [];
  const log = { warn: (...line: unknown[]) => void warnings.push(line) };
  await refuseExposure({ host, serviceToken: undefined, tls: undefined, ...credentials }, log);
  return warnings.length;
}

test.each(["0.0.0.0", "::", "10.0.0.1", "::ffff:10.0.0.1", "fe80::1"])(
  "the RPC port on %s takes credentials that somebody chose",
  async (host) => {
    await expect(expose(host)).rejects.toThrow(StartupError);
    await expect(expose(host)).rejects.toThrow(
      `RPC_HOST=${host} is reached from other machines: set SERVICE_TOKEN, or TLS_CERT`,
    );
    expect(await expose(host, { serviceToken })).toBe(1);
    expect(await expose(host, { tls })).toBe(0);
    expect(await expose(host, { serviceToken, tls })).toBe(0);
  },
);

test.each(["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1", "localhost"])(
  "on %s a generated token will do",
  async (host) => {
    expect(await expose(host)).toBe(0);
  },
);

test("a host that nobody knows is not taken for this machine", async () => {
  await expect(expose("nowhere.invalid")).rejects.toThrow(
    /^The host nowhere\.invalid \(RPC_HOST\) is not known: E/,
  );
});
