import { EngineFailure } from "../../engine.ts";
import type { Reference } from "./reference.ts";

type Sentence = (reference: Reference, hadCredentials: boolean) => string;

/**
 * What a daemon says when a pull fails, and what that means to the sandbox's owner. In this order: the
 * same words come up in several.
 */
const SENTENCES: [RegExp, Sentence][] = [
  [/no space left on device/i, ({ text }) => `no space is left on the host for image '${text}'`],
  [/toomanyrequests|rate limit/i, ({ host }) => `registry ${host} allows no more pulls for now`],
  [
    /no matching manifest|does not match the specified platform/i,
    ({ text }) => `image '${text}' has no variant for this host's platform`,
  ],
  [
    /manifest.*(unknown|not found)|not found: manifest/i,
    ({ text }) => `image '${text}' does not exist`,
  ],
  [
    /unauthorized|no basic auth credentials|authentication required|incorrect username or password/i,
    ({ host, text }, hadCredentials) =>
      hadCredentials
        ? `registry ${host} refused the credentials for image '${text}'`
        : `registry ${host} wants credentials for image '${text}'`,
  ],
  [
    /denied|forbidden|repository does not exist|repository name not known/i,
    ({ text }) => `image '${text}' does not exist, or access to it was denied`,
  ],
  [
    /x509|certificate|tls: /i,
    ({ host }) => `registry ${host} has no certificate that this host trusts`,
  ],
  [/connection refused/i, ({ host }) => `registry ${host} cannot be reached: connection refused`],
  [
    /no such host|server misbehaving/i,
    ({ host }) => `registry ${host} cannot be reached: unknown host`,
  ],
  [
    /timeout|deadline exceeded|no route to host|network is unreachable|connection reset|EOF/i,
    ({ host }) => `registry ${host} cannot be reached`,
  ],
];

/** Pure. @param message the daemon's, which holds no credentials */
export function pullFault(
  message: string,
  reference: Reference,
  hadCredentials: boolean,
): EngineFailure {
  const sentence = SENTENCES.find(([pattern]) => pattern.test(message))?.[1];
  if (sentence) return new EngineFailure(sentence(reference, hadCredentials));
  return new EngineFailure(`image '${reference.text}' could not be pulled: ${message}`);
}
