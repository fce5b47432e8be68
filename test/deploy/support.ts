import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parseAllDocuments, parse as parseYaml } from "yaml";
import { readConfig } from "../../runtime/env.ts";

const ROOT = join(import.meta.dirname, "../..");

/** The text of a file of the repository. */
export function fileText(path: string): Promise<string> {
  return readFile(join(ROOT, path), "utf8");
}

/** What a YAML file holds, its merge keys resolved. */
export async function yamlFile(path: string): Promise<unknown> {
  return parseYaml(await fileText(path), { merge: true });
}

/** Every document of a YAML text. */
export function yamlDocuments(text: string): unknown[] {
  return parseAllDocuments(text).map((document) => {
    if (document.errors[0]) throw document.errors[0];
    return document.toJS();
  });
}

/** The names of all settings that the program reads, as it reads them. */
export function knownSettings(): Set<string> {
  const names = new Set<string>();
  const env: NodeJS.ProcessEnv = new Proxy(Object.create(null), {
    get: (_, name) => {
      names.add(String(name));
      return undefined;
    },
  });
  readConfig(env);
  return names;
}

/** What may be set beside the program's own settings: Node's, tini's. */
export const SETTINGS_OF_OTHERS = new Set(["NODE_ENV", "NODE_COMPILE_CACHE", "TINI_SUBREAPER"]);
