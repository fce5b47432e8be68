import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { Health } from "../../proto/gen/grpc/health/v1/health_pb.ts";
import { Breaker } from "./breaker.ts";
import { Bulkhead } from "./bulkhead.ts";

export interface GuardOptions {
  /** Most calls under way at once, and as many streams; 2,000 unless set. */
  callsMax?: number | undefined;
  /** How long a service is doubted before calls to it fail at once, in milliseconds. */
  patienceMs?: number | undefined;
  /** Told when calls begin to fail at once, and when they are made again. */
  onChange?: ((open: boolean) => void) | undefined;
}

/** What is under way to another process. */
export interface RemoteNumbers {
  calls: number;
  streams: number;
  /** Refused because too much was under way, since the start. */
  refused: number;
  /** Whether calls fail at once, for it does not answer. */
  open: boolean;
}

export interface Guarded {
  transport: Transport;
  readonly numbers: RemoteNumbers;
  /** Asks the other side nothing more. */
  close(): void;
}

/** Together less than a server of ours lets one connection have. */
const MOST = 2_000;
/** A call that takes longer lets doubts arise. */
const SLOW_MS = 1_000;
/** How long a sign of life may take; every server of ours gives it without asking anybody. */
const PROBE_MS = 1_000;

/**
 * Keeps what one service does to its callers within bounds: calls that are too many fail at once, and so does every call
 * to a service that gives no sign of life.
 * @param ask the same service without retries; used for signs of life alone
 */
export function guard(inner: Transport, ask: Transport, options: GuardOptions): Guarded {
  const { callsMax = MOST, patienceMs, onChange } = options;
  const breaker = new Breaker({ probe: probeOf(ask), patienceMs, onChange });
  const [calls, streams] = [new Bulkhead(callsMax), new Bulkhead(callsMax)];
  return {
    transport: {
      async unary(...call) {
        breaker.check();
        const leave = calls.enter();
        return watched(breaker, () => inner.unary(...call)).finally(leave);
      },
      async stream(...call) {
        breaker.check();
        const [, signal] = call;
        const leave = leaving(streams.enter(), signal);
        try {
          const response = await watched(breaker, () => inner.stream(...call));
          return { ...response, message: ending(response.message, leave, breaker) };
        } catch (error) {
          leave();
          throw error;
        }
      },
    },
    get numbers() {
      const refused = calls.numbers.refused + streams.numbers.refused;
      return {
        calls: calls.numbers.underWay,
        streams: streams.numbers.underWay,
        refused,
        open: breaker.isOpen,
      };
    },
    close: () => breaker.close(),
  };
}

/** A service that no server has: the answer asks nobody else, and any answer will do. */
function probeOf(transport: Transport) {
  const health = createClient(Health, transport);
  return async (signal: AbortSignal) => {
    await health
      .check({ service: "sandgate.SignOfLife" }, { signal, timeoutMs: PROBE_MS })
      .catch((error: unknown) => {
        if (!isAnswer(error)) throw error;
      });
  };
}

async function watched<T>(breaker: Breaker, call: () => Promise<T>): Promise<T> {
  const slow = setTimeout(() => breaker.suspect(), SLOW_MS);
  try {
    const response = await call();
    breaker.answered();
    return response;
  } catch (error) {
    judge(error, breaker);
    throw error;
  } finally {
    clearTimeout(slow);
  }
}

function judge(error: unknown, breaker: Breaker): void {
  if (isAnswer(error)) breaker.answered();
  else if (ConnectError.from(error).code === Code.Unavailable) breaker.suspect();
}

function isAnswer(error: unknown): boolean {
  return error instanceof ConnectError && error.isWireError;
}

/** What ends a stream, also when its caller aborts it and reads no further. */
function leaving(leave: () => void, signal: AbortSignal | undefined): () => void {
  const end = () => {
    signal?.removeEventListener("abort", end);
    leave();
  };
  signal?.addEventListener("abort", end, { once: true });
  return end;
}

/** The messages of a stream, which is open until they end, or nobody wants more. */
function ending<T>(
  messages: AsyncIterable<T>,
  leave: () => void,
  breaker: Breaker,
): AsyncIterable<T> {
  return {
    [Symbol.asyncIterator]() {
      const source = messages[Symbol.asyncIterator]();
      return {
        next: () =>
          source.next().then(
            (result) => {
              if (result.done) leave();
              return result;
            },
            (error: unknown) => {
              leave();
              judge(error, breaker);
              throw error;
            },
          ),
        async return() {
          leave();
          await source.return?.();
          return { done: true, value: undefined };
        },
      };
    },
  };
}
