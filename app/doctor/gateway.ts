import { X509Certificate } from "node:crypto";
import { type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { json } from "node:stream/consumers";
import { TLSSocket } from "node:tls";
import type { Config } from "../../runtime/config.ts";
import { whyOf } from "../../runtime/data-dir.ts";
import { readTls, type TlsMaterial } from "../../runtime/tls/certificate.ts";
import { addressOf, urlOf } from "../listen.ts";
import { type Check, fail, ok, skip, warn } from "./check.ts";

const LIMIT_MS = 3_000;
const NAME = "gateway";
/** Of a certificate's life, in milliseconds: time enough to renew it. */
const SOON_MS = 14 * 86_400_000;

/** Whether the public port answers and can serve, and with which certificate. */
export async function askGateway({ gateway: { host, port, https } }: Config): Promise<Check> {
  if (port === 0) return skip(NAME, "PORT=0: only the program knows which port it has");
  try {
    const tls = https && (await readTls(https));
    const url = urlOf(host, port, tls);
    return (
      (await look(url, (path) => get({ host: addressOf(host), port, path }, tls))) ??
      ofExpiry(url, tls)
    );
  } catch (error) {
    return fail(NAME, whyOf(error), "correct HTTPS_CERT and HTTPS_KEY");
  }
}

/** What is wrong with what answers; undefined: nothing. */
async function look(
  url: string,
  ask: (path: string) => Promise<Answer | string>,
): Promise<Check | undefined> {
  const answer = await ask("/healthz");
  const mend = "npm start; or, where it runs elsewhere, set HOST and PORT as it has them";
  if (typeof answer === "string") return fail(NAME, `nothing answers at ${url}: ${answer}`, mend);
  if (answer.otherCertificate)
    return fail(NAME, `${url} has another certificate than HTTPS_CERT`, "see its log");
  if (answer.status !== 200)
    return fail(NAME, `what answers at ${url} is not Sandgate (${answer.status})`, mend);
  const readiness = await ask("/readyz");
  if (typeof readiness === "string")
    return fail(NAME, `${url} lives, but /readyz: ${readiness}`, "see its log");
  if (readiness.status === 200) return undefined;
  const said = readiness.message ?? readiness.status;
  return fail(NAME, `${url} lives and says: ${said}`, "see to what is missing");
}

function ofExpiry(url: string, tls: TlsMaterial | undefined): Check {
  const end = tls && new X509Certificate(tls.cert).validToDate;
  if (end && end.getTime() - Date.now() < SOON_MS)
    return warn(NAME, `its certificate expires at ${end.toISOString()}`, "renew HTTPS_CERT");
  return ok(NAME, `${url} lives and can serve`);
}

interface Answer {
  status: number | undefined;
  /** Of a refusal. */
  message: string | undefined;
  /** It came by TLS with a certificate that is not the given one. */
  otherCertificate: boolean;
}

/**
 * Nothing secret is sent, and the certificate is compared afterwards: it may be of a name that leads elsewhere.
 * @returns a string where there is no answer: why
 */
async function get(
  to: { host: string; port: number; path: string },
  tls: TlsMaterial | undefined,
): Promise<Answer | string> {
  try {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const options = { ...to, signal: AbortSignal.timeout(LIMIT_MS), agent: false };
    const request = tls
      ? requestHttps({ ...options, rejectUnauthorized: false }, resolve)
      : requestHttp(options, resolve);
    request.once("error", reject).end();
    const response = await promise;
    const { socket } = response;
    // Ours, or of who knows what listens there.
    const body = (await json(response).catch(() => null)) as {
      error?: { message?: unknown };
    } | null;
    const message = body?.error?.message;
    return {
      status: response.statusCode,
      message: typeof message === "string" ? message : undefined,
      otherCertificate: tls !== undefined && !presents(socket, tls),
    };
  } catch (error) {
    return whyOf(error);
  }
}

function presents(socket: unknown, { cert }: TlsMaterial): boolean {
  const presented = socket instanceof TLSSocket ? socket.getPeerX509Certificate() : undefined;
  return presented?.fingerprint256 === new X509Certificate(cert).fingerprint256;
}
