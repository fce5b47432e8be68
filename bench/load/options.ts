import { parseArgs } from "node:util";

export interface LoadOptions {
  /** How long is measured, behind the warm-up. */
  minutes: number;
  /** Operations that fall due each second. */
  rate: number;
  /** Operations under way at once, at most: that many connections. */
  connections: number;
  seed: string;
  gateways: number;
}

const USAGE = "npm run load -- --minutes M [--rate N] [--connections N] [--seed S] [--gateways N]";

/** @throws Error with the usage where the arguments do not fit */
export function readOptions(args: readonly string[]): LoadOptions {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        minutes: { type: "string", default: "2" },
        rate: { type: "string", default: "100" },
        connections: { type: "string", default: "32" },
        seed: { type: "string", default: "1" },
        gateways: { type: "string", default: "2" },
      },
    });
    return {
      minutes: number("minutes", values.minutes, 0.1, 1_440),
      rate: number("rate", values.rate, 1, 10_000),
      connections: number("connections", values.connections, 1, 1_000),
      seed: values.seed,
      gateways: number("gateways", values.gateways, 1, 8),
    };
  } catch (error) {
    throw new Error(`${error instanceof Error ? error.message : error}\n${USAGE}`);
  }
}

function number(name: string, text: string, least: number, most: number): number {
  const value = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  if (value >= least && value <= most) return value;
  throw new Error(`--${name} must be a number from ${least} to ${most}`);
}
