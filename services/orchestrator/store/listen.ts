import pg from "pg";

const RETRY_MS = 1_000;

/**
 * Calls `onHint` when the sandbox service says that there is work, and whenever the connection was
 * made anew, for a hint may have been missed meanwhile. Comes back by itself.
 */
export function listenForWork(
  url: string,
  onHint: () => void,
  onError: (error: unknown) => void,
): { stop(): Promise<void> } {
  let client: pg.Client | undefined;
  let retry: NodeJS.Timeout | undefined;
  let stopped = false;

  // The late end of a connection that has been replaced is no reason for one more.
  const again = (ended: pg.Client) => {
    if (stopped || retry || ended !== client) return;
    retry = setTimeout(() => {
      retry = undefined;
      void connect();
    }, RETRY_MS);
  };
  const connect = async () => {
    const next = new pg.Client({ connectionString: url, keepAlive: true });
    client = next;
    next.on("notification", onHint);
    next.on("error", onError);
    next.on("end", () => again(next));
    try {
      await next.connect();
      await next.query("LISTEN sandgate_work");
      onHint();
    } catch (error) {
      onError(error);
      again(next);
      // One that connected and could not listen would stay.
      await next.end().catch(onError);
    }
  };
  void connect();

  return {
    stop: async () => {
      stopped = true;
      clearTimeout(retry);
      await client?.end().catch(onError);
    },
  };
}
