/** What is measured and charged, in the order of the lines of a bill. */
export const METRICS = ["vcpu", "memory", "disk", "storage"] as const;

export type Metric = (typeof METRICS)[number];

/** Exact quantities: vCPUs times milliseconds, MiB times milliseconds, and of storage bytes times milliseconds. */
export type Use = Readonly<Record<Metric, bigint>>;

export const NO_USE: Use = { vcpu: 0n, memory: 0n, disk: 0n, storage: 0n };

const HOUR_MS = 3_600_000n;
const GIB_HOUR = 1024n * HOUR_MS;

export const MIB = 1n << 20n;
export const GIB = 1n << 30n;

/** The exact quantity of one unit of a line. */
export const UNIT: Readonly<Record<Metric, bigint>> = {
  vcpu: HOUR_MS,
  memory: GIB_HOUR,
  disk: GIB_HOUR,
  storage: GIB * HOUR_MS,
};

export const UNIT_NAMES: Readonly<Record<Metric, string>> = {
  vcpu: "vcpu_hours",
  memory: "gib_hours",
  disk: "gib_hours",
  storage: "gib_hours",
};

/** The quantity in the line's unit, as near as a double comes. */
export function inUnits(metric: Metric, quantity: bigint): number {
  return divided(quantity, UNIT[metric]);
}

/** The quotient as a double; the whole part is divided out first, so that large quantities keep their fraction. */
export function divided(quantity: bigint, by: bigint): number {
  return Number(quantity / by) + Number(quantity % by) / Number(by);
}

export function addUse(a: Use, b: Use): Use {
  return {
    vcpu: a.vcpu + b.vcpu,
    memory: a.memory + b.memory,
    disk: a.disk + b.disk,
    storage: a.storage + b.storage,
  };
}
