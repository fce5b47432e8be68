import type { Command } from "commander";
import type { Organization } from "../../proto/gen/organization/v1/organization_service_pb.ts";
import { fields, type Output, table } from "../output.ts";
import type { Runner } from "../runner.ts";
import * as shape from "../shapes/organization.ts";

/** The argument that names an organization. */
export const ORG = ["<org>", "slug or id of the organization"] as const;

export function organizationCommands(program: Command, { call }: Runner): void {
  const group = program.command("organizations").description("who uses this installation");
  group
    .command("create")
    .description("make an organization; it has no key yet")
    .requiredOption("--name <name>", "shown to people")
    .requiredOption("--slug <slug>", "unique: 3 to 63 of a-z, 0-9 and single inner hyphens")
    .action(
      call(async (api, { name, slug }: { name: string; slug: string }) => {
        const made = await api.organizations.createOrganization({ name, slug }, api.operator);
        return one(made.organization);
      }),
    );
  group
    .command("list")
    .description("all organizations, oldest first")
    .action(
      call(async (api) => {
        const answer = await api.organizations.listOrganizations({}, api.operator);
        return many(answer.organizations);
      }),
    );
  group
    .command("suspend")
    .description("its keys stop working; what runs goes on")
    .argument(...ORG)
    .action(
      call(async (api, org: string) => {
        const { id } = await api.find(org);
        return one((await api.organizations.suspendOrganization({}, api.as(id))).organization);
      }),
    );
  group
    .command("resume")
    .description("its keys work again")
    .argument(...ORG)
    .action(
      call(async (api, org: string) => {
        const { id } = await api.find(org);
        return one((await api.organizations.resumeOrganization({}, api.as(id))).organization);
      }),
    );
}

function one(organization: Organization | undefined): Output {
  if (!organization) throw new Error("the answer holds no organization");
  const json = shape.organization(organization);
  return { json, text: fields(json) };
}

function many(organizations: readonly Organization[]): Output {
  const data = organizations.map(shape.organization);
  const rows = data.map((o) => [o.slug, o.name, o.id, o.created_at, o.suspended_at]);
  return {
    json: { data },
    text: table(["slug", "name", "id", "created at", "suspended at"], rows),
  };
}
