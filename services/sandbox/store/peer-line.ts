import { type Line, openLine } from "../../../runtime/postgres/line.ts";

const CHANNEL = "sandgate_changes";
const PROVE_EVERY_MS = 2_000;
const SILENT_AFTER_MS = 5_000;

export interface PeerEars {
  /** What peers say from now on will be heard. */
  open(): void;
  heard(text: string): void;
  /** Once, and nothing after it. */
  lost(error: unknown): void;
}

/** What several sandbox processes hear each other by; a process hears itself, too. */
export interface PeerLine {
  /** @param text at most 7,999 bytes */
  say(text: string): Promise<void>;
  end: Line["end"];
}

export function openPeerLine(url: string, ears: PeerEars): PeerLine {
  const line = openLine(
    {
      url,
      channels: [CHANNEL],
      proveEveryMs: PROVE_EVERY_MS,
      silentAfterMs: SILENT_AFTER_MS,
    },
    { ...ears, heard: (_, payload) => ears.heard(payload) },
  );
  return { say: (text) => line.notify(CHANNEL, text), end: line.end };
}
