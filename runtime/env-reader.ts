import { isIP } from "node:net";
import type { TlsFiles } from "./tls/certificate.ts";

/** Reads single variables and collects what is wrong with them, so that one run shows every fault. */
export class EnvReader {
  /** Sentences, each naming its variable. No value is repeated: it may be a secret. */
  readonly faults: string[] = [];
  readonly #env: NodeJS.ProcessEnv;

  constructor(env: NodeJS.ProcessEnv) {
    this.#env = env;
  }

  /** The trimmed value; undefined where unset or empty. */
  text(name: string): string | undefined {
    return this.#env[name]?.trim() || undefined;
  }

  match(name: string, fits: (text: string) => boolean, wanted: string): string | undefined {
    return this.#parse(name, wanted, (text) => (fits(text) ? text : undefined));
  }

  /** A decimal integer from `min` to `max`. */
  integer(name: string, min: number, max: number): number | undefined {
    return this.#parse(name, `an integer from ${min} to ${max}`, (text) => {
      const value = /^\d{1,15}$/.test(text) ? Number(text) : -1;
      return value >= min && value <= max ? value : undefined;
    });
  }

  /** A decimal number from `min` to `max`, such as `1.5`. */
  decimal(name: string, min: number, max: number): number | undefined {
    return this.#parse(name, `a number from ${min} to ${max}`, (text) => {
      const value = /^\d{1,9}(\.\d{1,9})?$/.test(text) ? Number(text) : Number.NaN;
      return value >= min && value <= max ? value : undefined;
    });
  }

  choice<T extends string>(name: string, choices: readonly T[], fallback: T): T {
    const find = (text: string) => choices.find((choice) => choice === text);
    return this.#parse(name, `one of ${choices.join(", ")}`, find) ?? fallback;
  }

  /** @param protocols each with its colon */
  url(name: string, protocols: readonly string[]): string | undefined {
    const wanted = `a URL that begins with ${protocols.map((p) => `${p}//`).join(" or ")}`;
    return this.#parse(name, wanted, (text) => {
      const protocol = URL.canParse(text) ? new URL(text).protocol : "";
      return protocols.includes(protocol) ? text : undefined;
    });
  }

  /** A `redis://` or `rediss://` URL; a path is the number of a database. */
  redisUrl(name: string): string | undefined {
    const isRedis = (text: string) => {
      const url = URL.canParse(text) ? new URL(text) : undefined;
      if (!url || !/^rediss?:$/.test(url.protocol)) return false;
      const isReadable = [url.username, url.password].every((part) => decode(part) !== undefined);
      return isReadable && url.hostname !== "" && /^(\/\d*)?$/.test(url.pathname);
    };
    return this.match(name, isRedis, "a URL such as redis://:password@127.0.0.1:6379/0");
  }

  /** A list of origins with commas between. */
  origins(name: string): string[] {
    const wanted = "origins such as https://console.example.org, with commas between";
    const isOrigin = (text: string) => URL.canParse(text) && new URL(text).origin === text;
    return this.#list(name, wanted, isOrigin);
  }

  /** A list of IP addresses and networks such as `10.0.0.0/8`, with commas between. */
  addresses(name: string): string[] {
    const isNetwork = (text: string) => {
      const [address = "", prefix, ...more] = text.split("/");
      const bits = { 4: 32, 6: 128 }[isIP(address)];
      if (bits === undefined || more.length > 0) return false;
      return prefix === undefined || (/^\d{1,3}$/.test(prefix) && Number(prefix) <= bits);
    };
    return this.#list(name, "IP addresses or networks, with commas between", isNetwork);
  }

  /** Names and values, `a=1,b=2`; values are percent-encoded. */
  pairs(name: string): Record<string, string> {
    const parse = (text: string) => {
      const parts = text.split(",").map((part) => /^\s*([^=\s]+)\s*=(.*)$/.exec(part));
      if (!parts.every((part) => part !== null)) return undefined;
      const pairs = parts.map(([, key = "", value = ""]) => [key, decode(value.trim())] as const);
      const good = pairs.flatMap(([key, value]) => (value === undefined ? [] : [[key, value]]));
      return good.length === pairs.length ? Object.fromEntries(good) : undefined;
    };
    return this.#parse(name, "names and percent-encoded values such as a=1,b=2", parse) ?? {};
  }

  /** Exactly `length` bytes, in hexadecimal or standard base64. */
  key(name: string, length: number): Buffer | undefined {
    return this.#parse(name, `${length} bytes in base64 or hexadecimal`, (text) => {
      if (new RegExp(`^[0-9a-fA-F]{${length * 2}}$`).test(text)) return Buffer.from(text, "hex");
      const bytes = Buffer.from(text, "base64");
      const isBase64 = bytes.toString("base64").replace(/=+$/, "") === text.replace(/=+$/, "");
      return isBase64 && bytes.length === length ? bytes : undefined;
    });
  }

  /** Paths of PEM files, all of `parts` or none. */
  tlsFiles(
    prefix: TlsFiles["prefix"],
    parts: readonly ["CERT", "KEY", "CA"?],
  ): TlsFiles | undefined {
    const path = (part = "") => this.text(`${prefix}_${part}`);
    const missing = parts.filter((part) => path(part) === undefined);
    if (missing.length === parts.length) return undefined;
    const names = parts.map((part) => `${prefix}_${part}`);
    for (const part of missing)
      this.faults.push(`${prefix}_${part} must be set too: ${names.join(", ")} go together`);
    const [cert = "", key = "", ca] = parts.map(path);
    return { prefix, cert, key, ca };
  }

  #list(name: string, wanted: string, fits: (part: string) => boolean): string[] {
    const parse = (text: string) => {
      const parts = text.split(",").map((part) => part.trim());
      return parts.every(fits) ? parts : undefined;
    };
    return this.#parse(name, wanted, parse) ?? [];
  }

  #parse<T>(name: string, wanted: string, parse: (text: string) => T | undefined): T | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const value = parse(text);
    if (value === undefined) this.faults.push(`${name} must be ${wanted}`);
    return value;
  }
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
