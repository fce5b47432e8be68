import Type, { type Static } from "typebox";
import { textFault } from "../../../validation/rule.ts";
import { mapOf, optional, strict, text, words } from "../../../validation/schema.ts";
import { envKeyFault, scriptFaults } from "./keys.ts";

export const LOG_LEVELS = ["error", "warn", "info", "debug", "trace"] as const;

export const RuntimeInput = strict(
  {
    cmd: optional(Type.Array(text()), {
      description: "Replaces the image's CMD; `[]` is an override with nothing in it.",
      default: null,
    }),
    entrypoint: optional(Type.Array(text()), {
      description: "Replaces the image's ENTRYPOINT; its CMD then no longer counts.",
      default: null,
    }),
    shell: optional(text(), { description: "Default shell for commands.", default: null }),
    user: optional(text(), { description: "User name or id, `user[:group]`.", default: null }),
    workdir: optional(text({ rule: workdirFault }), {
      description: "Absolute working directory of commands.",
      default: null,
    }),
    log_level: optional(words(LOG_LEVELS), { default: null }),
    scripts: optional(mapOf(text(), { rule: scriptFaults }), {
      description: "File name to content; found at `/.msb/scripts/<name>` and on PATH.",
      default: {},
    }),
  },
  { title: "RuntimeInput", description: "What runs in the machine, and how." },
);
export type RuntimeInput = Static<typeof RuntimeInput>;

const InitEnvVar = Type.Unsafe<[string, string]>({
  type: "array",
  prefixItems: [Type.String({ minLength: 1, rule: envKeyFault }), text()],
  items: false,
  minItems: 2,
  maxItems: 2,
  hint: "must be a pair of key and value",
});

export const InitInput = Type.Object(
  {
    cmd: Type.String({ description: "Absolute path, or `auto`.", rule: initCmdFault }),
    args: optional(Type.Array(text()), { default: [] }),
    env: optional(Type.Array(InitEnvVar), {
      description: "Pairs of key and value.",
      default: [],
    }),
  },
  { title: "InitInput", description: "The program that becomes process 1." },
);
export type InitInput = Static<typeof InitInput>;

function workdirFault(value: unknown): string | undefined {
  if (typeof value === "string" && !value.startsWith("/")) return "must be an absolute path";
  return textFault(value);
}

function initCmdFault(value: unknown): string | undefined {
  if (typeof value !== "string" || value === "auto") return undefined;
  return value.startsWith("/") ? textFault(value) : "must be an absolute path, or auto";
}
