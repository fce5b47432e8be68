import type { FastifyInstance, FastifyRequest } from "fastify";
import type { FieldFault } from "../../runtime/errors.ts";
import { invalidRequest } from "../errors.ts";

/** Far more than clients and proxies send. */
const MOST_HEADERS = 100;
/** Who repeats one of these may mean another one than the proxy before us did. */
const ONCE = ["host", "authorization", "content-type"];

/** Refuses heads that could be understood in more than one way, or are too long. */
export function checkHeads(app: FastifyInstance): void {
  app.addHook("onRequest", (request, _reply, done) => {
    const faults = faultsOf(request);
    done(faults.length > 0 ? invalidRequest(faults) : undefined);
  });
}

function faultsOf({ raw, headers }: FastifyRequest): FieldFault[] {
  const { rawHeaders, httpVersion } = raw;
  if (rawHeaders.length > 2 * MOST_HEADERS)
    return [{ field: "headers", message: `are more than ${MOST_HEADERS}` }];
  const faults: FieldFault[] = [];
  // Node would refuse it by itself, in no envelope.
  if (httpVersion === "1.1" && headers.host === undefined)
    faults.push({ field: "headers.host", message: "is required" });
  // HTTP/1.0 knows no chunks: a proxy that speaks it sees the body end elsewhere.
  if (httpVersion === "1.0" && headers["transfer-encoding"] !== undefined)
    faults.push({ field: "headers.transfer-encoding", message: "is not of HTTP/1.0" });
  for (const name of ONCE)
    if (count(rawHeaders, name) > 1)
      faults.push({ field: `headers.${name}`, message: "may be sent once" });
  return faults;
}

function count(rawHeaders: readonly string[], name: string): number {
  let found = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const sent = rawHeaders[i];
    if (sent?.length === name.length && sent.toLowerCase() === name) found += 1;
  }
  return found;
}
