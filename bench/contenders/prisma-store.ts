import { PrismaPg } from "@prisma/adapter-pg";
import { v7 as uuidv7 } from "uuid";
import { type Prisma, PrismaClient } from "../../prisma/client/client.ts";
import { dig } from "../../prisma/dig.ts";
import type { PagePoint } from "../../runtime/pages.ts";
import { actorOf, type Holder, type NewRow, type Row, type Store, takenOf } from "./store.ts";

const COLUMNS = {
  id: true,
  orgId: true,
  name: true,
  slug: true,
  status: true,
  statusReason: true,
  ephemeral: true,
  createdAt: true,
  startedAt: true,
  stoppedAt: true,
  lastFailureMessage: true,
  spec: true,
} as const satisfies Prisma.SandboxSelect;
type Found = Prisma.SandboxGetPayload<{ select: typeof COLUMNS }>;

/** How long a transaction may wait for a connection: none is refused for the load alone. */
const PATIENCE = { maxWait: 10_000, timeout: 10_000 };

class QuotaExceeded extends Error {}

/** Prisma's own API, as its manual has it. */
export class PrismaStore implements Store {
  readonly #prisma: PrismaClient;

  constructor(connectionString: string, max: number) {
    this.#prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString, max }) });
  }

  async findHolder(sha256: Buffer): Promise<Holder | undefined> {
    const now = new Date();
    const key = await this.#prisma.apiKey.findFirst({
      where: {
        keySha256: new Uint8Array(sha256),
        revokedAt: null,
        organization: { suspendedAt: null },
        OR: [{ expiresAt: null }, { expiresAt: { gt: now } }],
      },
      select: { id: true, orgId: true, name: true },
    });
    return key ? { orgId: key.orgId, apiKeyId: key.id, apiKeyName: key.name } : undefined;
  }

  findById(orgId: string, id: string): Promise<Row | undefined> {
    return this.#find({ id, orgId, destroyedAt: null });
  }

  findByName(orgId: string, name: string): Promise<Row | undefined> {
    return this.#find({ name, orgId, destroyedAt: null });
  }

  async list(...[orgId, limit, after]: Parameters<Store["list"]>) {
    const found = await this.#prisma.sandbox.findMany({
      where: { orgId, destroyedAt: null, ...behind(after) },
      select: COLUMNS,
      orderBy: [{ createdAt: "desc" }, { id: "desc" }],
      take: limit + 1,
    });
    const rows = found.slice(0, limit).map(toRow);
    const last = found.length > limit ? rows.at(-1) : undefined;
    return { rows, next: last ? { us: `${last.created_at.getTime()}000`, id: last.id } : null };
  }

  async create(holder: Holder, row: NewRow) {
    try {
      return await this.#prisma.$transaction((tx) => create(tx, holder, row), PATIENCE);
    } catch (error) {
      if (error instanceof QuotaExceeded) return "quota";
      const cause = dig(error, "meta", "driverAdapterError", "cause");
      const taken = takenOf(String(dig(cause, "constraint", "index")));
      if (taken) return taken;
      throw error;
    }
  }

  async #find(where: Prisma.SandboxWhereInput): Promise<Row | undefined> {
    const found = await this.#prisma.sandbox.findFirst({ where, select: COLUMNS });
    return found ? toRow(found) : undefined;
  }
}

async function create(tx: Prisma.TransactionClient, holder: Holder, row: NewRow): Promise<Row> {
  const { orgId } = holder;
  const { ephemeral } = row.spec.lifecycle;
  const max = await limitOf(tx, orgId);
  const places = await tx.places.upsert({
    where: { orgId },
    create: { orgId, totalSandboxes: 1, ephemeralRunning: 0, persistentRunning: 0 },
    update: { totalSandboxes: { increment: 1 } },
  });
  if (max !== null && places.totalSandboxes > max) throw new QuotaExceeded();
  const now = new Date();
  const spec = row.spec as unknown as Prisma.InputJsonObject;
  const data = { ...row, orgId, spec, ephemeral, status: "created", requires: [], createdAt: now };
  const made = await tx.sandbox.create({ data, select: COLUMNS });
  const payload = { sandbox_id: row.id, name: row.name, slug: row.slug };
  const kind = { category: "sandbox", eventType: "sandbox_created" };
  await tx.event.create({
    data: { id: uuidv7(), orgId, ...kind, actor: actorOf(holder), payload, timestamp: now },
  });
  return toRow(made);
}

/** An organization's own limit, else its plan's, else the default plan's; null: none. */
async function limitOf(tx: Prisma.TransactionClient, orgId: string): Promise<number | null> {
  const override = await tx.override.findUnique({ where: { orgId } });
  const own = dig(override?.limits, "max_sandboxes");
  if (typeof own === "number") return own;
  const subscription = await tx.subscription.findUnique({ where: { orgId } });
  const plan = await tx.plan.findFirst({
    where: subscription ? { name: subscription.plan } : { isDefault: true },
  });
  const given = dig(plan?.limits, "max_sandboxes");
  return typeof given === "number" ? given : null;
}

// To the millisecond, which is all that Prisma reads of a time: the rows of the bench are made so.
function behind(after: PagePoint | null): Prisma.SandboxWhereInput {
  if (!after) return {};
  const createdAt = new Date(Number(after.us) / 1_000);
  return { OR: [{ createdAt: { lt: createdAt } }, { createdAt, id: { lt: after.id } }] };
}

function toRow(found: Found): Row {
  const { orgId, statusReason, createdAt, startedAt, stoppedAt, lastFailureMessage, ...same } =
    found;
  return {
    ...same,
    org_id: orgId,
    status_reason: statusReason,
    created_at: createdAt,
    started_at: startedAt,
    stopped_at: stoppedAt,
    last_failure_message: lastFailureMessage,
  } as unknown as Row;
}
