import { Code, ConnectError } from "@connectrpc/connect";

/** What connect-node says of a stream that the other side, or its end, has reset. */
const RESET = /^http\/2 stream closed/;

/**
 * The error of a call as it is, or as Unavailable where the connection broke and not the call: connect-node
 * shows that as Aborted, Canceled, Internal or Unavailable, by the moment.
 * @param signal the caller's; what it ended stays Canceled
 */
export function asUnavailable(error: unknown, signal: AbortSignal | undefined): unknown {
  const failed = ConnectError.from(error);
  if (signal?.aborted || !isConnectionLost(failed)) return error;
  // The cause is for the log; its text may name a host, so it is not the message.
  return new ConnectError("service unavailable", Code.Unavailable, undefined, undefined, failed);
}

/** The same for the messages of a stream. */
export async function* unavailableStream<T>(
  messages: AsyncIterable<T>,
  signal: AbortSignal | undefined,
): AsyncGenerator<T> {
  try {
    yield* messages;
  } catch (error) {
    throw asUnavailable(error, signal);
  }
}

function isConnectionLost({ code, cause, rawMessage, isWireError }: ConnectError): boolean {
  if (isWireError || code === Code.DeadlineExceeded) return false;
  // Nobody here has asked for an end.
  if (code === Code.Aborted || code === Code.Canceled) return true;
  return RESET.test(rawMessage) || (cause instanceof Error && "code" in cause);
}
