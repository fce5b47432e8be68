import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { type Command, Option } from "commander";
import type { Api } from "../api.ts";
import { fields, type Output, table } from "../output.ts";
import type { Runner } from "../runner.ts";
import * as shape from "../shapes/billing.ts";
import { DURATION_FORM, LIMITS, MOMENT_FORM, parsePast } from "../values.ts";
import { ORG } from "./organizations.ts";

/** The options of a window of time. */
export interface WindowOptions {
  since?: Timestamp;
  until?: Timestamp;
}

type By = "total" | "sandbox" | "volume";

export function usageCommands(program: Command, { call }: Runner): void {
  program
    .command("quotas")
    .description("the limits of an organization, and what it uses of them")
    .argument(...ORG)
    .action(
      call(async (api, org: string) => {
        const { id } = await api.find(org);
        const json = shape.quotas(await api.billing.getQuotas({}, api.as(id)));
        return { json, text: fields(withUnlimited(json)) };
      }),
    );
  const usage = program
    .command("usage")
    .description("what an organization used, and its estimated cost; this month unless told")
    .argument(...ORG)
    .addOption(new Option("--by <what>", "rows of each UTC day").choices(["sandbox", "volume"]));
  addWindow(usage).action(
    call(async (api, org: string, { by, ...times }: WindowOptions & { by?: By }) => {
      const { id } = await api.find(org);
      return REPORTS[by ?? "total"](api, id, { window: windowOf(times) });
    }),
  );
}

/** Adds `--since` and `--until`. */
export function addWindow(command: Command): Command {
  const form = `${MOMENT_FORM}, or a while ago, ${DURATION_FORM}`;
  return command
    .option("--since <when>", `inclusive: ${form}`, parsePast)
    .option("--until <when>", "inclusive: likewise", parsePast);
}

export function windowOf({ since, until }: WindowOptions): WindowOptions {
  return { ...(since && { since }), ...(until && { until }) };
}

type Window = { window: ReturnType<typeof windowOf> };

const REPORTS: Record<By, (api: Api, orgId: string, request: Window) => Promise<Output>> = {
  total: async (api, orgId, request) => {
    const json = shape.usage(await api.billing.getUsage(request, api.as(orgId)));
    const money = (cents: number) => `${(cents / 100).toFixed(2)} ${json.currency}`;
    const lines = json.line_items.map((l) => [l.name, l.quantity, l.unit, money(l.amount_cents)]);
    const sums = fields({
      period: `${json.period_start} to ${json.period_end}`,
      total: money(json.total_cents),
      projected: money(json.projected_spend_cents),
    });
    return { json, text: `${table(["what", "quantity", "unit", "amount"], lines)}\n\n${sums}` };
  },
  sandbox: async (api, orgId, request) => {
    const json = shape.sandboxUsage(await api.billing.listSandboxUsage(request, api.as(orgId)));
    const names = new Map(json.sandboxes.map(({ id, name }) => [id, name]));
    const headings = [
      "day",
      "sandbox",
      "id",
      "vcpu seconds",
      "memory MiB seconds",
      "disk MiB seconds",
    ];
    const rows = json.rows.map((r) => [
      r.day,
      names.get(r.sandbox_id) ?? null,
      r.sandbox_id,
      r.vcpu_seconds,
      r.mem_mib_seconds,
      r.disk_mib_seconds,
    ]);
    return { json, text: table(headings, rows) };
  },
  volume: async (api, orgId, request) => {
    const json = shape.storageUsage(await api.billing.listStorageUsage(request, api.as(orgId)));
    const names = new Map(json.volumes.map(({ id, name }) => [id, name]));
    const rows = json.rows.map((r) => [
      r.day,
      names.get(r.volume_id) ?? null,
      r.volume_id,
      r.mib_seconds,
    ]);
    return { json, text: table(["day", "volume", "id", "MiB seconds"], rows) };
  },
};

function withUnlimited(quotas: ReturnType<typeof shape.quotas>) {
  const shown = Object.entries(quotas).map(([name, value]) => [
    name,
    value === null && LIMITS.includes(name) ? "unlimited" : value,
  ]);
  return Object.fromEntries(shown);
}
