import type { Interceptor } from "@connectrpc/connect";

type AnyCall = Parameters<Interceptor>[0];

/**
 * Wraps a call in interceptors, outermost first. Their type is erased, as in Connect: each gives
 * back the kind of answer that it was given, which the compiler cannot know.
 */
export function intercept<Req, Res>(
  call: (req: Req) => Promise<Res>,
  interceptors: readonly Interceptor[],
): (req: Req) => Promise<Res> {
  const erased = call as unknown as AnyCall;
  return interceptors.reduceRight(
    (next, interceptor) => interceptor(next),
    erased,
  ) as unknown as typeof call;
}
