import {
  type ArgType,
  type ColumnType,
  ColumnTypeEnum as Of,
  type SqlQueryable,
  type SqlResultSet,
} from "@prisma/driver-adapter-utils";

type Read = (value: never) => unknown;

/** What Prisma's adapter leaves as PostgreSQL writes it, alone and in arrays. */
const LEFT: [ColumnType, ColumnType, Read][] = [
  [Of.Int64, Of.Int64Array, (digits: string) => BigInt(digits)],
  [Of.Json, Of.JsonArray, (text: string) => JSON.parse(text)],
  [Of.DateTime, Of.DateTimeArray, (text: string) => new Date(text)],
  [Of.Date, Of.DateArray, (text: string) => new Date(text)],
  [Of.Bytes, Of.BytesArray, (bytes: Buffer) => new Uint8Array(bytes)],
];
const READS = new Map<ColumnType, Read>(
  LEFT.flatMap(([one, many, read]) => [
    [one, read],
    [many, (all: unknown[]) => all.map((value) => orNull(value, read))],
  ]),
);

/**
 * One statement by Prisma's adapter. Prisma's client takes as long again as PostgreSQL and the driver together, and gives each call
 * an object with a getter. V8 keeps such an object, and the rows, until it collects the whole heap, which it then has to do every
 * few seconds.
 * @throws DriverAdapterError
 */
export async function runStatement<Row>(
  adapter: SqlQueryable,
  sql: string,
  values: readonly unknown[],
): Promise<Row[]> {
  const args = values.map((value) => value ?? null);
  return toRows<Row>(await adapter.queryRaw({ sql, args, argTypes: args.map(argTypeOf) }));
}

// PostgreSQL finds out itself what each is to be.
function argTypeOf(value: unknown): ArgType {
  return { scalarType: "unknown", arity: Array.isArray(value) ? "list" : "scalar" };
}

// The store that wrote the SQL names the row.
function toRows<Row>({ columnNames, columnTypes, rows }: SqlResultSet): Row[] {
  const reads = columnTypes.map((type) => READS.get(type));
  return rows.map((values) => {
    const row: Record<string, unknown> = {};
    for (const [at, name] of columnNames.entries()) row[name] = orNull(values[at], reads[at]);
    return row as Row;
  });
}

function orNull(value: unknown, read: Read | undefined): unknown {
  return value === null || !read ? value : read(value as never);
}
