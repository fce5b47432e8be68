import type { Command } from "commander";
import type { Subscription } from "../../proto/gen/billing/v1/billing_service_pb.ts";
import { fields, type Output } from "../output.ts";
import type { Runner } from "../runner.ts";
import * as shape from "../shapes/billing.ts";
import { collecting, LIMITS, type LimitChange, parseLimit, parseLimitName } from "../values.ts";
import { ORG } from "./organizations.ts";

export function overrideCommands(program: Command, { call }: Runner): void {
  const group = program
    .command("overrides")
    .description("limits of one organization, whatever its plan says");
  group
    .command("show")
    .description("the organization's plan and overrides")
    .argument(...ORG)
    .action(
      call(async (api, org: string) => {
        const { id } = await api.find(org);
        return showSubscription((await api.billing.getSubscription({}, api.as(id))).subscription);
      }),
    );
  group
    .command("set")
    .description("set limits; others stay")
    .argument(...ORG)
    .argument(
      "<limit=value...>",
      `${LIMITS.join(", ")}: an integer, or unlimited`,
      collecting(parseLimit),
    )
    .action(
      call(async (api, org: string, changes: readonly LimitChange[]) => {
        const { id } = await api.find(org);
        const set = changes.map(([limit, value]) =>
          value === null ? { limit } : { limit, value },
        );
        return showSubscription((await api.billing.setOverrides({ set }, api.as(id))).subscription);
      }),
    );
  group
    .command("clear")
    .description("limits are the plan's again")
    .argument(...ORG)
    .argument("<limit...>", LIMITS.join(", "), collecting(parseLimitName))
    .action(
      call(async (api, org: string, clear: string[]) => {
        const { id } = await api.find(org);
        return showSubscription(
          (await api.billing.setOverrides({ clear }, api.as(id))).subscription,
        );
      }),
    );
}

export function showSubscription(message: Subscription | undefined): Output {
  if (!message) throw new Error("the answer holds no subscription");
  const json = shape.subscription(message);
  const plan = `${json.plan}${json.by_default ? " (the default)" : ""}`;
  const overrides = Object.entries(json.overrides).map(([name, value]) => [
    name,
    value ?? "unlimited",
  ]);
  return { json, text: fields({ plan, ...Object.fromEntries(overrides) }) };
}
