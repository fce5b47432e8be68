// Connection exceptions, a server that only reads for now (as one that stands by for another does), too many
// connections, a row that stayed locked, a statement that took too long, and a server that shuts down or starts up.
const SQLSTATE = /^(?:08...|25006|53300|55P03|57014|57P0[123])$/;
const SYSTEM = new Set(["ENOENT", "ECONNREFUSED", "ECONNRESET", "ENOTFOUND", "EPIPE", "ETIMEDOUT"]);
// What `pg` and its pool throw without a code.
const MESSAGES =
  /^(?:Connection terminated|Query read timeout|timeout expired|timeout exceeded when trying to connect|Cannot use a pool after calling end|Client has encountered a connection error)/;
/** Between machines that start at the same time, and a database that is made behind its server. */
const NOT_YET = new Set(["EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "3D000"]);

/** Whether a database that was asked was not there to answer: a SQLSTATE or a code of the system, else a message. */
export function isAway(code: string, message: string): boolean {
  return SQLSTATE.test(code) || SYSTEM.has(code) || MESSAGES.test(message);
}

/** Whether a failed attempt to reach a database, or its cause, may pass by itself. */
export function mayPass(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  return NOT_YET.has(code) || isAway(code, error.message) || mayPass(error.cause);
}
