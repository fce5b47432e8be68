import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { METRICS } from "./catalogue.ts";
import type { Definition } from "./define.ts";
import type { Metrics } from "./metrics.ts";

/** Counts the calls that a process answers; outermost. */
export function countServerCalls(metrics: Metrics): Interceptor {
  return counting(metrics, METRICS.rpcServerCalls, METRICS.rpcServerDuration);
}

/** Counts the calls that a process makes to another. */
export function countClientCalls(metrics: Metrics): Interceptor {
  return counting(metrics, METRICS.rpcClientCalls, METRICS.rpcClientDuration);
}

type Labels = "service" | "method";

function counting(
  metrics: Metrics,
  calls: Definition<"counter", Labels | "code">,
  duration: Definition<"histogram", Labels>,
): Interceptor {
  const counter = metrics.counter(calls);
  const histogram = metrics.histogram(duration);
  return (next) => async (req) => {
    const began = performance.now();
    const over = (code: string) => {
      const labels = { service: req.method.parent.typeName, method: req.method.name };
      counter.inc({ ...labels, code });
      histogram.observe(labels, (performance.now() - began) / 1_000);
    };
    try {
      const res = await next(req);
      if (res.stream) return { ...res, message: watched(res.message, over) };
      over("ok");
      return res;
    } catch (error) {
      over(codeOf(error));
      throw error;
    }
  };
}

/** Tells how a stream ended; who stops reading it has canceled it. */
async function* watched<T>(messages: AsyncIterable<T>, over: (code: string) => void) {
  let code = "canceled";
  try {
    yield* messages;
    code = "ok";
  } catch (error) {
    code = codeOf(error);
    throw error;
  } finally {
    over(code);
  }
}

/** As gRPC writes it, in lower case: `deadline_exceeded`. */
function codeOf(error: unknown): string {
  const name = Code[error instanceof ConnectError ? error.code : Code.Unknown];
  return name.replace(/(?<=[a-z])[A-Z]/g, "_$&").toLowerCase();
}
