import Type, { type Static, type TSchema } from "typebox";
import { nullable, text } from "../validation/schema.ts";

/** The query of every route that answers page by page. */
export const pageQuery = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, default: 20 })),
  cursor: Type.Optional(
    text({ description: "The `next_cursor` of the page before.", minLength: 1 }),
  ),
};

export function pageOf<T extends TSchema>(item: T, title: string) {
  return Type.Object(
    {
      data: Type.Array(item, { description: "Newest first." }),
      has_more: Type.Boolean(),
      next_cursor: nullable(Type.String(), {
        description: "Null exactly when `has_more` is false.",
      }),
    },
    { title },
  );
}

/** What asks for a page, of a query with `pageQuery`. */
export function pageMessage({ limit, cursor }: { limit?: number; cursor?: string }) {
  return { pageSize: limit ?? 0, pageToken: cursor ?? "" };
}

export function publicPage<T>(data: T[], nextPageToken: string | undefined) {
  return {
    data,
    has_more: nextPageToken !== undefined,
    next_cursor: nextPageToken ?? null,
  } satisfies Static<ReturnType<typeof pageOf>>;
}

/** The JSON of a page, given that of its items. */
export function pageText<T>(itemText: (item: T) => string) {
  return ({ data, ...rest }: ReturnType<typeof publicPage<T>>): string =>
    `{"data":[${data.map(itemText).join(",")}],${JSON.stringify(rest).slice(1)}`;
}
