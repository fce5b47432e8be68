/** What was waited for did not come in time. */
export class TooSlow extends Error {}

/**
 * What `work` comes to, where that is soon enough.
 * @throws TooSlow
 */
export async function inTime<T>(work: Promise<T>, ms: number): Promise<T> {
  const late = Promise.withResolvers<never>();
  const expire = () => late.reject(new TooSlow(`no answer within ${ms} ms`));
  // Where this process was what was slow, the answer is there to be read first.
  const timer = setTimeout(() => setImmediate(expire), ms);
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
