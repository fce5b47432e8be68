import type { FastifyInstance } from "fastify";

/** The methods of each path pattern, filled as routes are registered. */
export function collectPaths(app: FastifyInstance): ReadonlyMap<string, readonly string[]> {
  const paths = new Map<string, string[]>();
  app.addHook("onRoute", ({ url, method }) => {
    const methods = paths.get(url) ?? [];
    paths.set(url, [...methods, ...[method].flat()]);
  });
  return paths;
}

/** The methods that some route of this URL's path takes; none: there is no such path. */
export function allowedMethods(paths: ReadonlyMap<string, readonly string[]>, url: string) {
  const [path = ""] = url.split("?");
  const fitting = [...paths].filter(([pattern]) => pattern !== "*" && matches(pattern, path));
  return [...new Set(fitting.flatMap(([, methods]) => methods))];
}

function matches(pattern: string, path: string): boolean {
  const wanted = pattern.split("/");
  const given = path.split("/");
  return (
    wanted.length === given.length &&
    wanted.every((part, i) => (part.startsWith(":") ? given[i] !== "" : part === given[i]))
  );
}
