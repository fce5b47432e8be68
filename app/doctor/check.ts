import type { Config } from "../../runtime/config.ts";
import type { Lifecycle } from "../../runtime/lifecycle.ts";

/** What one look found. */
export interface Check {
  name: string;
  /** `skip`: it could not be looked at, or need not be. */
  status: "ok" | "warn" | "fail" | "skip";
  /** What was seen, a sentence. */
  seen: string;
  /** What to do about it. */
  mend?: string;
}

export interface Subject {
  config: Config;
  /** Ends what is opened for the look. */
  lifecycle: Lifecycle;
  /** URL of an RPC port to be asked too. */
  server: string | undefined;
  /** What a look finds out for those after it. */
  facts: Facts;
}

export interface Facts {
  /** Who leads an engine now; undefined: nobody, or it is not known. */
  leader?: { engine: string; features: readonly string[] };
  /** Every engine that has ever led here; undefined: it is not known. */
  engines?: readonly string[];
  /** The mark of the folder that volumes lie in, null: none was made yet; undefined: it is not known. */
  volumesMark?: string | null;
}

/** Looks at one part; what fails is a check of its own, never an exception. */
export type Question = (subject: Subject) => Promise<Check[]>;

export function ok(name: string, seen: string): Check {
  return { name, status: "ok", seen };
}

export function warn(name: string, seen: string, mend: string): Check {
  return { name, status: "warn", seen, mend };
}

export function fail(name: string, seen: string, mend: string): Check {
  return { name, status: "fail", seen, mend };
}

export function skip(name: string, seen: string): Check {
  return { name, status: "skip", seen };
}

/** Settings may hold URLs with a user and a password. */
export function withoutCredentials({ mend, ...check }: Check): Check {
  const clean = (text: string) => text.replaceAll(/\/\/[^/@\s]*@/g, "//");
  return { ...check, seen: clean(check.seen), ...(mend !== undefined && { mend: clean(mend) }) };
}
