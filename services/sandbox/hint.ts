import { forAll } from "../../runtime/current-call.ts";

/**
 * Coalesces calls: the first is sent at once, those that come within a few milliseconds of it become one more.
 * A hint that fails is only late work, so its error goes to `onError` and nowhere else.
 */
export function createHint(
  send: () => Promise<void>,
  onError: (error: unknown) => void,
  delayMs = 2,
): () => void {
  let resting = false;
  let again = false;
  const hint = () => {
    if (resting) {
      again = true;
      return;
    }
    resting = true;
    forAll(send).catch(onError);
    setTimeout(() => {
      resting = false;
      if (!again) return;
      again = false;
      hint();
    }, delayMs).unref();
  };
  return hint;
}
