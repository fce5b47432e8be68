import type { Command } from "commander";
import type { Event } from "../../proto/gen/organization/v1/organization_service_pb.ts";
import type { Api } from "../api.ts";
import { fields, table } from "../output.ts";
import type { Runner } from "../runner.ts";
import * as shape from "../shapes/organization.ts";
import { parseCount } from "../values.ts";
import { ORG } from "./organizations.ts";
import { addWindow, type WindowOptions, windowOf } from "./usage.ts";

interface ListOptions extends WindowOptions {
  type?: string;
  limit: number;
  all?: boolean;
}

const PAGE = 100;

export function eventCommands(program: Command, { call }: Runner): void {
  const group = program.command("events").description("the audit log of an organization");
  const list = group
    .command("list")
    .description("who did what, newest first")
    .argument(...ORG)
    .option("--type <type>", "such as sandbox_created")
    .option("--limit <count>", "how many at most", parseCount, 20)
    .option("--all", "however many there are");
  addWindow(list).action(
    call(async (api, org: string, options: ListOptions) => {
      const { id } = await api.find(org);
      const { events, hasMore } = await readEvents(api, id, options);
      const data = events.map(shape.event);
      const rows = data.map((e) => [
        e.timestamp,
        e.event_type,
        subjectOf(e.payload),
        actorOf(e.actor),
        e.id,
      ]);
      return {
        json: { data, has_more: hasMore },
        text: table(["timestamp", "event type", "about", "actor", "id"], rows),
        ...(hasMore && { note: "there are more: --limit or --all" }),
      };
    }),
  );
  group
    .command("show")
    .description("one event with its payload")
    .argument(...ORG)
    .argument("<event>", "id of the event")
    .action(
      call(async (api, org: string, eventId: string) => {
        const { id } = await api.find(org);
        const { event } = await api.organizations.getEvent({ eventId }, api.as(id));
        if (!event) throw new Error("the answer holds no event");
        const json = shape.event(event);
        const texts = { actor: JSON.stringify(json.actor), payload: JSON.stringify(json.payload) };
        return { json, text: fields({ ...json, ...texts }) };
      }),
    );
}

async function readEvents(api: Api, orgId: string, options: ListOptions) {
  const wanted = options.all ? Number.POSITIVE_INFINITY : options.limit;
  const filters = { eventType: options.type ?? "", ...windowOf(options) };
  const events: Event[] = [];
  for (let pageToken = ""; ; ) {
    const pageSize = Math.min(PAGE, wanted - events.length);
    const request = { ...filters, pageSize, pageToken };
    const page = await api.organizations.listEvents(request, api.as(orgId));
    events.push(...page.events);
    const { nextPageToken } = page;
    if (nextPageToken === undefined || events.length >= wanted)
      return { events, hasMore: nextPageToken !== undefined };
    pageToken = nextPageToken;
  }
}

/** What it happened to, as people know it. */
function subjectOf({ name, email, plan, pool }: Record<string, unknown>): string | null {
  const subject = name ?? email ?? plan ?? pool;
  return typeof subject === "string" ? subject : null;
}

/** A name for people, whatever kind of actor it is. */
function actorOf(actor: Record<string, unknown>): string {
  return `${actor.kind}: ${actor.label ?? actor.name ?? actor.code ?? "-"}`;
}
