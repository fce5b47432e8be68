import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Command, InvalidArgumentError } from "commander";
import type { Plan, PlanSchema } from "../../proto/gen/billing/v1/billing_service_pb.ts";
import { LimitsSchema, PricesSchema } from "../../proto/gen/billing/v1/billing_service_pb.ts";
import { ServiceError } from "../../runtime/errors.ts";
import { toConnectError } from "../../runtime/rpc/errors.ts";
import type { Api } from "../api.ts";
import { fields, type Output, table } from "../output.ts";
import type { Runner } from "../runner.ts";
import * as shape from "../shapes/billing.ts";
import { collecting, LIMITS, type LimitChange, PRICES, parseLimit, parsePrice } from "../values.ts";
import { ORG } from "./organizations.ts";
import { showSubscription } from "./overrides.ts";

interface SetOptions {
  limit?: readonly LimitChange[];
  price?: readonly (readonly [name: string, value: bigint])[];
  currency?: string;
  hardCap?: boolean;
  default?: boolean;
}

const PLAN = ["<plan>", "name of the plan"] as const;

export function planCommands(program: Command, runner: Runner): void {
  const group = program.command("plans").description("limits, included use and prices");
  addReads(group, runner);
  addSet(group, runner);
  addAssign(group, runner);
}

function addReads(group: Command, { call }: Runner): void {
  group
    .command("list")
    .description("all plans, by name")
    .action(
      call(async (api) => {
        const data = (await listPlans(api)).map(shape.plan);
        const rows = data.map((p) => [p.name, p.is_default, p.hard_cap, p.currency]);
        return { json: { data }, text: table(["name", "default", "hard cap", "currency"], rows) };
      }),
    );
  group
    .command("show")
    .description("one plan with its limits and prices")
    .argument(...PLAN)
    .action(
      call(async (api, name: string) => {
        const plan = (await listPlans(api)).find((one) => one.name === name);
        if (plan) return showPlan(plan);
        throw toConnectError(new ServiceError("PLAN_NOT_FOUND", `there is no plan '${name}'`));
      }),
    );
}

function addSet(group: Command, { call }: Runner): void {
  group
    .command("set")
    .description("make a plan, or change what is named of one; everybody on it has that at once")
    .argument(...PLAN)
    .option(
      "--limit <name=value>",
      `${LIMITS.join(", ")}: an integer, or unlimited; repeatable`,
      collecting(parseLimit),
    )
    .option(
      "--price <name=value>",
      `${PRICES.join(", ")}: in the currency, such as 0.05; repeatable`,
      collecting(parsePrice),
    )
    .option("--currency <code>", "ISO 4217; USD for a new plan", parseCurrency)
    .option(
      "--hard-cap",
      "nothing starts beyond the included hours, and after a grace nothing runs",
    )
    .option("--no-hard-cap", "use beyond the included hours goes on")
    .option("--default", "the plan of organizations that were put on none")
    .action(
      call(async (api, name: string, options: SetOptions) => {
        const present = (await listPlans(api)).find((one) => one.name === name);
        const { plan } = await api.billing.setPlan(
          { plan: changed(name, present, options) },
          api.operator,
        );
        if (!plan) throw new Error("the answer holds no plan");
        return showPlan(plan);
      }),
    );
}

function addAssign(group: Command, { call }: Runner): void {
  group
    .command("assign")
    .description("put an organization on a plan")
    .argument(...ORG)
    .argument("[plan]", "name of the plan; none: the default plan, whichever that is")
    .action(
      call(async (api, org: string, plan: string | undefined) => {
        const { id } = await api.find(org);
        const { subscription } = await api.billing.assignPlan({ plan: plan ?? "" }, api.as(id));
        return showSubscription(subscription);
      }),
    );
}

async function listPlans(api: Api): Promise<Plan[]> {
  return (await api.billing.listPlans({}, api.operator)).plans;
}

/** All of a plan, for a plan is replaced as a whole. */
function changed(
  name: string,
  present: Plan | undefined,
  options: SetOptions,
): MessageInitShape<typeof PlanSchema> {
  const limits = (options.limit ?? []).map(([limit, value]) => [
    LimitsSchema.fields.find((field) => field.name === limit)?.localName ?? limit,
    value ?? undefined,
  ]);
  const prices = (options.price ?? []).map(([price, value]) => [
    PricesSchema.fields.find((field) => field.name === price)?.localName ?? price,
    value,
  ]);
  return {
    name,
    limits: { ...plain(present?.limits), ...Object.fromEntries(limits) },
    prices: { ...plain(present?.prices), ...Object.fromEntries(prices) },
    currency: options.currency ?? present?.currency ?? "USD",
    hardCap: options.hardCap ?? present?.hardCap ?? false,
    isDefault: options.default ?? present?.isDefault ?? false,
  };
}

/** The fields of a message without what makes it one, so that they can be changed. */
function plain<T extends { $typeName: string; $unknown?: unknown }>(message: T | undefined) {
  const { $typeName: _, $unknown: __, ...values } = message ?? {};
  return values;
}

function showPlan(message: Plan): Output {
  const json = shape.plan(message);
  const { limits, prices, ...rest } = json;
  const priced = Object.entries(prices).map(([name, value]) => [`price ${name}`, value]);
  const limited = Object.entries(limits).map(([name, value]) => [name, value ?? "unlimited"]);
  return { json, text: fields({ ...rest, ...Object.fromEntries([...limited, ...priced]) }) };
}

function parseCurrency(text: string): string {
  if (/^[A-Z]{3}$/.test(text)) return text;
  throw new InvalidArgumentError("It is three capital letters, such as USD.");
}
