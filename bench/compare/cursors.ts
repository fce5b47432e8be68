import { toUs } from "../../prisma/pages.ts";
import { type PagePoint, page } from "../../runtime/pages.ts";
import { withClient } from "../../runtime/postgres/connect.ts";
import { createSecrets } from "../../runtime/secrets.ts";
import type { Ground } from "./ground.ts";

/** Of sandboxes, that `list a page` asks for. */
export const PAGE = 20;
/** More than there are connections, so that no two ask for the same page at the same moment. */
export const PAGES = 64;

/**
 * Cursors of as many pages, which begin behind one sandbox after another. They are made as the program makes them: walking to the
 * last page of a million would take 50,000 requests.
 * @param offset how many sandboxes lie before the one that the first page begins behind
 */
export async function cursorsFrom(
  { databaseUrl, secretsKey }: Pick<Ground, "databaseUrl" | "secretsKey">,
  orgId: string,
  offset: number,
): Promise<string[]> {
  const secrets = createSecrets(Buffer.from(secretsKey, "hex"));
  const sign = (data: string) => secrets.hmac("cursor", data);
  const listed = { list: "sandboxes", orgId, filters: [[], []] };
  const asked = { limit: PAGE, cursor: "" };
  const points = await pointsFrom(databaseUrl, offset);
  const made = points.map((next) => page(sign, listed, asked, async () => ({ rows: [], next })));
  return (await Promise.all(made)).map(({ nextCursor }) => nextCursor ?? "");
}

function pointsFrom(databaseUrl: string, offset: number): Promise<PagePoint[]> {
  return withClient(databaseUrl, async (client) => {
    const { rows } = await client.query<PagePoint>(
      `SELECT id, ${toUs("created_at")} AS us FROM sandbox.sandboxes WHERE destroyed_at IS NULL
       ORDER BY created_at DESC, id DESC OFFSET $1 LIMIT $2`,
      [offset, PAGES],
    );
    if (rows.length < PAGES) throw new Error("there are no such pages");
    return rows;
  });
}
