import { type Command, Option } from "commander";
import type { Member } from "../../proto/gen/organization/v1/organization_service_pb.ts";
import type { Api } from "../api.ts";
import { fields, table } from "../output.ts";
import type { Runner } from "../runner.ts";
import * as shape from "../shapes/organization.ts";
import { ORG } from "./organizations.ts";

interface AddOptions {
  email: string;
  role: keyof typeof shape.ROLES;
  name?: string;
}

export function memberCommands(program: Command, { call }: Runner): void {
  const group = program.command("members").description("the people of an organization");
  group
    .command("add")
    .description("add a person")
    .argument(...ORG)
    .requiredOption("--email <email>", "unique in the organization")
    .addOption(roleOption())
    .option("--name <name>", "shown to people")
    .action(
      call(async (api, org: string, { email, role, name }: AddOptions) => {
        const { id } = await api.find(org);
        const request = { email, role: shape.ROLES[role], ...(name && { displayName: name }) };
        const { member } = await api.organizations.addMember(request, api.as(id));
        if (!member) throw new Error("the answer holds no member");
        const json = shape.member(member);
        return { json, text: fields(json) };
      }),
    );
  group
    .command("list")
    .description("all members, newest first")
    .argument(...ORG)
    .action(
      call(async (api, org: string) => {
        const { id } = await api.find(org);
        const data = (await listMembers(api, id)).map(shape.member);
        const rows = data.map((m) => [m.email, m.role, m.display_name, m.id, m.joined_at]);
        return { json: { data }, text: table(["email", "role", "name", "id", "joined at"], rows) };
      }),
    );
  group
    .command("remove")
    .description("remove a person")
    .argument(...ORG)
    .argument("<member>", "id of the membership, or the email")
    .action(
      call(async (api, org: string, member: string) => {
        const { id } = await api.find(org);
        const memberId = await resolve(api, id, member);
        await api.organizations.removeMember({ memberId }, api.as(id));
        return { json: { id: memberId }, text: `removed ${memberId}` };
      }),
    );
}

function roleOption(): Option {
  const roles = Object.keys(shape.ROLES);
  return new Option("--role <role>", "what they may do").choices(roles).makeOptionMandatory();
}

async function resolve(api: Api, orgId: string, member: string): Promise<string> {
  if (!member.includes("@")) return member;
  const email = member.toLowerCase();
  const found = (await listMembers(api, orgId)).find((one) => one.email.toLowerCase() === email);
  // The service says that there is no such member.
  return found?.id ?? "00000000-0000-0000-0000-000000000000";
}

async function listMembers(api: Api, orgId: string): Promise<Member[]> {
  const all: Member[] = [];
  for (let pageToken = ""; ; ) {
    const page = await api.organizations.listMembers({ pageSize: 100, pageToken }, api.as(orgId));
    all.push(...page.members);
    if (page.nextPageToken === undefined) return all;
    pageToken = page.nextPageToken;
  }
}
