const QUIET_MS = 60_000;
/** Of different sayings that are remembered. */
const MOST = 100;

/** What stands in a log line beside the error. */
export interface Unsaid {
  /** How often the same was left unsaid since it was said last. */
  unsaid?: number;
}

/**
 * For what fails again and again until somebody mends it, as background work does while the database is away: the same
 * error is said once a minute.
 * @param say writes the log line
 */
export function seldom(
  say: (error: unknown, unsaid: Unsaid) => void,
  now: () => number = () => performance.now(),
): (error: unknown) => void {
  const said = new Map<string, { at: number; unsaid: number }>();
  return (error) => {
    const text = String(error);
    const last = said.get(text);
    if (last && now() - last.at < QUIET_MS) {
      last.unsaid += 1;
      return;
    }
    if (said.size >= MOST) said.clear();
    said.set(text, { at: now(), unsaid: 0 });
    say(error, last && last.unsaid > 0 ? { unsaid: last.unsaid } : {});
  };
}
