import { isIPv4, isIPv6 } from "node:net";

const LABEL = "[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?";
const DOMAIN = new RegExp(`^(?=.{1,253}$)${LABEL}(?:\\.${LABEL})*$`);

export function domainFault(value: unknown): string | undefined {
  if (typeof value !== "string" || DOMAIN.test(value)) return undefined;
  return "must be a domain name";
}

/** A leading dot is allowed: `.example.com` and `example.com` mean the same suffix. */
export function suffixFault(value: unknown): string | undefined {
  return domainFault(typeof value === "string" ? value.replace(/^\./, "") : value);
}

/** Of a pattern such as `*.example.com`. */
export function wildcardFault(value: unknown): string | undefined {
  if (typeof value !== "string") return undefined;
  const rest = value.startsWith("*.") ? value.slice(2) : "";
  return DOMAIN.test(rest) ? undefined : "must be `*.` and a domain name";
}

/** Of a domain name or an IP address. */
export function hostFault(value: unknown): string | undefined {
  if (typeof value !== "string" || isAddress(value) || DOMAIN.test(value)) return undefined;
  return "must be a host name or an IP address";
}

/** Of a prefix such as `10.0.0.0/8`; an address alone is a prefix of all its bits. */
export function cidrFault(value: unknown): string | undefined {
  if (typeof value !== "string") return undefined;
  const [address = "", bits, more] = value.split("/");
  const most = isIPv4(address) ? 32 : isAddress(address) ? 128 : -1;
  const fits = bits === undefined || (/^(0|[1-9]\d{0,2})$/.test(bits) && Number(bits) <= most);
  return most > 0 && fits && more === undefined
    ? undefined
    : "must be an IPv4 or IPv6 prefix, such as 10.0.0.0/8";
}

// Zone ids (`fe80::1%eth0`) name an interface of one machine.
function isAddress(text: string): boolean {
  return isIPv4(text) || (isIPv6(text) && !text.includes("%"));
}
