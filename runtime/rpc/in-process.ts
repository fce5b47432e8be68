import { create, type DescMessage, type DescMethod } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  type Interceptor,
  type MethodImplSpec,
  type StreamRequest,
  type StreamResponse,
  type Transport,
  type UnaryRequest,
  type UnaryResponse,
} from "@connectrpc/connect";
import { runStreamingCall, transformInvokeImplementation } from "@connectrpc/connect/protocol";
import { abortableStream } from "./abort.ts";
import { CallScope } from "./call-scope.ts";
import { deepFreeze, frozenStream } from "./freeze.ts";
import { intercept } from "./intercept.ts";
import { type ErrorLog, memoryInterceptors } from "./interceptors.ts";
import { handlerContext, received, requestHead, responseHead } from "./memory-call.ts";
import { collectMethods, type Routes } from "./routes.ts";
import { warmUp } from "./validate.ts";

export interface InProcessOptions {
  log: ErrorLog;
  /** The client's, outermost first. */
  interceptors?: readonly Interceptor[];
  /** Freezes every message that crosses, so that whoever changes one fails. For tests: it costs. */
  freeze?: boolean;
}

/**
 * A transport that calls implementations in memory, without serialization: the same deadlines,
 * aborts, validation and errors as through a socket. A message is handed over, not copied: sender
 * and receiver may read it, neither may change it any more.
 */
export function createInProcessTransport(routes: Routes, options: InProcessOptions): Transport {
  const methods = collectMethods(routes);
  warmUp([...methods.keys()].map(({ input }) => input));
  return {
    unary: unaryCalls(methods, options),
    stream: streamingCalls(methods, options),
  };
}

type Methods = ReadonlyMap<DescMethod, MethodImplSpec>;

function unaryCalls(methods: Methods, options: InProcessOptions): Transport["unary"] {
  const server = memoryInterceptors(options.log);
  const client = options.interceptors ?? [];
  const handOver = options.freeze ? deepFreeze : <T>(message: T) => message;

  return async (method, signal, timeoutMs, header, input, values) => {
    type Request = UnaryRequest<typeof method.input, typeof method.output>;
    type Response = UnaryResponse<typeof method.input, typeof method.output>;
    const { impl } = find(methods, method, "unary");
    const scope = new CallScope(signal, timeoutMs);

    const serve = (sent: Request): Promise<Response> => {
      const req = received(sent);
      const context = handlerContext(req, scope);
      const answer = async ({ message }: Request): Promise<Response> => {
        const output = create(method.output, await impl(message, context));
        return { ...responseHead(context), stream: false, method, message: handOver(output) };
      };
      return intercept(answer, server)(req);
    };

    const message = handOver(create(method.input, input));
    const head = requestHead(method, header, values);
    const req: Request = { ...head, stream: false, method, message, signal: scope.signal };
    return scope.run(intercept(serve, client)(req));
  };
}

function streamingCalls(methods: Methods, options: InProcessOptions): Transport["stream"] {
  const server = memoryInterceptors(options.log);
  const interceptors = [...(options.interceptors ?? [])];
  const handOver: <T>(messages: AsyncIterable<T>) => AsyncIterable<T> = options.freeze
    ? frozenStream
    : (messages) => messages;

  return async (method, signal, timeoutMs, header, input, values) => {
    type Request = StreamRequest<typeof method.input, typeof method.output>;
    type Response = StreamResponse<typeof method.input, typeof method.output>;
    const spec = find(methods, method, method.methodKind);
    const scope = new CallScope(signal, timeoutMs);

    const next = async (sent: Request): Promise<Response> => {
      const req = received(sent);
      req.signal.addEventListener("abort", () => scope.end(), { once: true });
      const context = handlerContext(req, scope);
      const output = transformInvokeImplementation(spec, context, server)(handOver(req.message));
      const message = abortableStream(handOver(output), req.signal);
      return { ...responseHead(context), stream: true, method, message };
    };

    const head = requestHead(method, header, values);
    const req = { ...head, stream: true as const, method, message: input };
    return runStreamingCall({ interceptors, signal: scope.signal, req, next });
  };
}

function find<I extends DescMessage, O extends DescMessage, K extends MethodImplSpec["kind"]>(
  methods: Methods,
  method: DescMethod & { input: I; output: O },
  kind: K,
): MethodImplSpec<I, O> & { kind: K } {
  const spec = methods.get(method);
  if (spec?.kind !== kind)
    throw new ConnectError(
      `${method.parent.typeName}.${method.name} is not implemented`,
      Code.Unimplemented,
    );
  // Each implementation is kept under its own method, which its erased type no longer says.
  return spec as MethodImplSpec<I, O> & { kind: K };
}
