import { type DescMethod, getOption } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Level } from "@bufbuild/protobuf/wkt";
import {
  Code,
  ConnectError,
  type Interceptor,
  type StreamRequest,
  type UnaryRequest,
} from "@connectrpc/connect";
import { createLinkedAbortController } from "@connectrpc/connect/protocol";
import type { Logger } from "pino";
import { finite } from "../../proto/gen/rpc/v1/options_pb.ts";
import { inCall } from "../current-call.ts";
import { ServiceError } from "../errors.ts";
import { abortable, abortableStream, abortError } from "./abort.ts";
import { readActor, readCaller, readRequestId } from "./caller-headers.ts";
import { actorKey, callerKey } from "./context.ts";
import { internalError, toConnectError } from "./errors.ts";
import { validateRequest } from "./validate.ts";

type Request = UnaryRequest | StreamRequest;

/** What the runtime needs of the log: only failures that nobody classified are written here. */
export type ErrorLog = Pick<Logger, "error">;

/**
 * What every call through a socket passes, outermost first. The service token is checked before
 * all of them, and before the body is read: see server.ts.
 */
export function socketInterceptors(log: ErrorLog, closing: AbortSignal): Interceptor[] {
  return [errors(log), endStreams(closing), caller, deadline, validate, current];
}

/**
 * The same for a call in memory: its caller arrives as a value, and the transport itself keeps the
 * deadline, so that a call which needs no AbortSignal never makes one.
 */
export function memoryInterceptors(log: ErrorLog): Interceptor[] {
  return [errors(log), validate, current];
}

/** Every failure leaves as a ConnectError that tells a client what it may know. */
function errors(log: ErrorLog): Interceptor {
  return (next) => async (req) => {
    const translate = (error: unknown) => outgoing(error, req, log);
    try {
      const res = await next(req);
      return res.stream ? { ...res, message: mapErrors(res.message, translate) } : res;
    } catch (error) {
      throw translate(error);
    }
  };
}

/** A stream that may never end by itself is ended by a server that closes; the client resumes it elsewhere. */
function endStreams(closing: AbortSignal): Interceptor {
  return (next) => (req) =>
    isEndless(req.method)
      ? next({ ...req, signal: createLinkedAbortController(req.signal, closing).signal })
      : next(req);
}

/** What the client alone sends has an end, as a single answer has, and what the contract says it of. */
function isEndless(method: DescMethod): boolean {
  const isAnsweredOnce = method.methodKind === "unary" || method.methodKind === "client_streaming";
  return !isAnsweredOnce && !getOption(method, finite);
}

const caller: Interceptor = (next) => (req) => {
  const caller = readCaller(req.header);
  req.contextValues.set(callerKey, caller);
  if (!caller) req.contextValues.set(actorKey, readActor(req.header));
  return next(req);
};

/** No handler begins after the deadline, and none holds the answer back beyond it. */
const deadline: Interceptor = (next) => async (req) => {
  if (req.signal.aborted) throw abortError(req.signal);
  const res = await abortable(next(req), req.signal);
  return res.stream ? { ...res, message: abortableStream(res.message, req.signal) } : res;
};

const validate: Interceptor = (next) => async (req) => {
  if (req.stream) return next({ ...req, message: validated(req.method, req.message) });
  validateRequest(req.method.input, req.message);
  return next(req);
};

/**
 * What a verb does is known to be done for this call. A read ends with it where it has not begun; a change does not, for
 * it may have to put something in order.
 */
const current: Interceptor = (next) => (req) => {
  if (req.stream) return next(req);
  const isRead = req.method.idempotency === Level.NO_SIDE_EFFECTS;
  const owner = req.contextValues.get(callerKey)?.orgId;
  return inCall({ owner, signal: isRead ? req.signal : undefined }, async () => next(req));
};

async function* validated(method: DescMethod, messages: StreamRequest["message"]) {
  for await (const message of messages) {
    validateRequest(method.input, message);
    yield message;
  }
}

async function* mapErrors<T>(source: AsyncIterable<T>, translate: (error: unknown) => Error) {
  try {
    yield* source;
  } catch (error) {
    throw translate(error);
  }
}

function outgoing(error: unknown, req: Request, log: ErrorLog): ConnectError {
  if (error instanceof ServiceError) return toConnectError(error);
  if (req.signal.aborted) return abortError(req.signal);
  // With a cause, it wraps what a library threw: its text may name a host.
  if (error instanceof ConnectError && error.cause === undefined) return error;
  const requestId = requestIdOf(req);
  const fields = { rpc: rpcName(req.method), request_id: requestId, org_id: orgIdOf(req) };
  log.error({ err: error, ...fields }, "rpc failed");
  return unreachable(error) ?? internalError(requestId);
}

/** Another service could not be reached: the caller may try again. */
function unreachable(error: unknown): ConnectError | undefined {
  if (!(error instanceof ConnectError && error.code === Code.Unavailable)) return undefined;
  return toConnectError(new ServiceError("SERVICE_UNAVAILABLE", "service unavailable"));
}

/** One is made up where the caller sent none, so that answer and log can be matched. */
function requestIdOf({ contextValues, header }: Request): string {
  return contextValues.get(callerKey)?.requestId ?? readRequestId(header) ?? crypto.randomUUID();
}

function orgIdOf({ contextValues }: Request): string | undefined {
  return contextValues.get(callerKey)?.orgId;
}

function rpcName({ parent, name }: DescMethod): string {
  return `${parent.typeName}/${name}`;
}
