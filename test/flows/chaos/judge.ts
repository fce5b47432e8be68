import type { Answer } from "./http.ts";
import type { Attempt } from "./journal.ts";

export interface Verdict {
  outcome: Attempt["outcome"];
  /** Nothing more can be learned by asking again. */
  final: boolean;
  /** No record is kept of it, so a repeat may be told something else. */
  unkept?: boolean;
  /** Why no client should ever get such an answer. */
  strange?: string;
}

/**
 * What an answer says about the change that was asked for. Pure.
 * @param mounts whether the sandbox mounts a volume that may be gone
 */
export function judge(answer: Answer, waits: boolean, mounts = false): Verdict {
  const { status, code } = answer;
  switch (status) {
    case 200:
      return { outcome: "acked", final: true };
    case 404:
      // A wait on a sandbox that somebody destroys meanwhile says so too.
      return { outcome: waits ? "doubt" : "refused", final: true };
    case 400:
      // The volume that it mounts was deleted.
      if (!mounts || code !== "invalid_sandbox_config") return strange(answer);
      return { ...REFUSED, unkept: true };
    case 403:
      return code === "quota_exceeded" ? REFUSED : strange(answer);
    case 409:
      // Another try with the same key is not answered yet.
      return code === "idempotency_in_progress" ? { outcome: "doubt", final: false } : REFUSED;
    case 429:
    case 502:
      return { outcome: "refused", final: false };
    case 0:
    case 503:
    case 504:
      return { outcome: "doubt", final: false };
    default:
      return strange(answer);
  }
}

const REFUSED: Verdict = { outcome: "refused", final: true };

function strange({ status, code }: Answer): Verdict {
  return { outcome: "doubt", final: true, strange: `${status} ${code}` };
}
