import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { Command } from "commander";
import type { ApiKey } from "../../proto/gen/organization/v1/organization_service_pb.ts";
import { fields, type Output, table } from "../output.ts";
import type { Runner } from "../runner.ts";
import * as shape from "../shapes/organization.ts";
import { DURATION_FORM, MOMENT_FORM, parseDuration, parseFuture } from "../values.ts";
import { ORG } from "./organizations.ts";

const KEY = ["<key>", "id of the key"] as const;

export function keyCommands(program: Command, runner: Runner): void {
  const group = program.command("keys").description("the API keys of an organization");
  addCreate(group, runner);
  addList(group, runner);
  addRevoke(group, runner);
  addRotate(group, runner);
}

function addCreate(group: Command, { call }: Runner): void {
  group
    .command("create")
    .description("make a key; it is printed this once, alone on standard output")
    .argument(...ORG)
    .requiredOption("--name <name>", "shown to people and in audit events")
    .option("--expires <when>", `${MOMENT_FORM}, or in a while, ${DURATION_FORM}`, parseFuture)
    .action(
      call(async (api, org: string, { name, expires }: { name: string; expires?: Date }) => {
        const { id } = await api.find(org);
        const request = { name, ...(expires && { expiresAt: timestampFromDate(expires) }) };
        const { key, secret } = await api.organizations.createKey(request, api.as(id));
        return made(key, secret, {});
      }),
    );
}

function addList(group: Command, { call }: Runner): void {
  group
    .command("list")
    .description("all keys, newest first, those that no longer work too")
    .argument(...ORG)
    .action(
      call(async (api, org: string) => {
        const { id } = await api.find(org);
        const data = (await api.organizations.listKeys({}, api.as(id))).keys.map(shape.key);
        const headings = [
          "name",
          "key",
          "status",
          "id",
          "created at",
          "last used at",
          "expires at",
        ];
        const rows = data.map((k) => [
          k.name,
          `${k.prefix}…${k.last_four}`,
          k.status,
          k.id,
          k.created_at,
          k.last_used_at,
          k.expires_at,
        ]);
        return { json: { data }, text: table(headings, rows) };
      }),
    );
}

function addRevoke(group: Command, { call }: Runner): void {
  group
    .command("revoke")
    .description("a key stops working, within a second")
    .argument(...ORG)
    .argument(...KEY)
    .action(
      call(async (api, org: string, apiKeyId: string) => {
        const { id } = await api.find(org);
        const { key } = await api.organizations.revokeKey({ apiKeyId }, api.as(id));
        const json = shape.key(required(key));
        return { json, text: fields(json) };
      }),
    );
}

function addRotate(group: Command, { call }: Runner): void {
  group
    .command("rotate")
    .description("make a key of the same name in place of one; it is printed this once")
    .argument(...ORG)
    .argument(...KEY)
    .option(
      "--overlap <duration>",
      `how long the old key stays good, ${DURATION_FORM}`,
      parseDuration,
      0,
    )
    .action(
      call(async (api, org: string, apiKeyId: string, { overlap }: { overlap: number }) => {
        const { id } = await api.find(org);
        const request = { apiKeyId, overlapSecs: overlap };
        const answer = await api.organizations.rotateKey(request, api.as(id));
        const replaced = shape.key(required(answer.replaced));
        return made(answer.key, answer.secret, { replaced });
      }),
    );
}

/** A key that can never be read again. */
function made(
  message: ApiKey | undefined,
  secret: string,
  more: { replaced?: ReturnType<typeof shape.key> },
): Output {
  const key = shape.key(required(message));
  const lines = [`made the key '${key.name}' (${key.id}), shown this once`];
  if (key.expires_at) lines.push(`it expires at ${key.expires_at}`);
  if (more.replaced) lines.push(`the old key ${more.replaced.id} ${endOf(more.replaced)}`);
  return { json: { ...key, secret, ...more }, text: secret, note: lines.join("\n") };
}

function endOf({ revoked_at, expires_at }: ReturnType<typeof shape.key>): string {
  return revoked_at ? "no longer works" : `works until ${expires_at}`;
}

function required(key: ApiKey | undefined): ApiKey {
  if (!key) throw new Error("the answer holds no key");
  return key;
}
