import type { Answer } from "../http.ts";

/** `again`: it took no effect, and has to be asked again; `strange`: no client should ever get that. */
export type Outcome = "acked" | "refused" | "doubt" | "again" | "strange";

/** What an answer says about a change of a volume that nobody else changes. Pure. */
export function judgeVolume({ status, code }: Answer): Outcome {
  switch (status) {
    case 200:
      return "acked";
    case 409:
      if (code === "volume_in_use") return "refused";
      return code === "idempotency_in_progress" ? "doubt" : "strange";
    case 429:
      return "again";
    case 0:
    case 502:
    case 503:
    case 504:
      return "doubt";
    default:
      return "strange";
  }
}
