import Type, { type Static } from "typebox";
import { MAX_FAULTS, type RuleFault, unicodeFault } from "../../../validation/rule.ts";
import { optional, strict, tagged, text } from "../../../validation/schema.ts";
import { hostVolumePath, machinePath } from "./paths.ts";

const MAX_MODE = 0o7777;

const target = () => machinePath("Absolute path in the machine.");
const content = () => Type.String({ description: "Written as UTF-8.", rule: unicodeFault });
const mode = () =>
  optional(Type.Integer({ format: "int32", minimum: 0, maximum: MAX_MODE }), {
    description: "Permission bits, 0 to 4095 (0o7777).",
  });
const replace = () =>
  optional(Type.Boolean(), {
    description: "Whether an existing target is replaced; else it is a failure.",
    default: false,
  });

const Bytes = Type.Unsafe<number[]>({
  type: "array",
  description: "The file, byte by byte.",
  // One rule over the whole array: it may have ten million items.
  rule: byteFaults,
  published: { type: "array", items: { type: "integer", minimum: 0, maximum: 255 } },
});

const branch = <const K extends string, P extends Parameters<typeof strict>[0]>(
  type: K,
  title: string,
  description: string,
  fields: P,
) => strict({ type: Type.Literal(type), ...fields }, { title, description });

export const PatchInput = tagged(
  "type",
  [
    branch("text", "TextPatch", "Write a text file.", {
      path: target(),
      content: content(),
      mode: mode(),
      replace: replace(),
    }),
    branch("file", "FilePatch", "Write a file.", {
      path: target(),
      content: Bytes,
      mode: mode(),
      replace: replace(),
    }),
    branch("copy_file", "CopyFilePatch", "Copy a file of the host volume.", {
      src: hostVolumePath(),
      dst: target(),
      mode: mode(),
      replace: replace(),
    }),
    branch("copy_dir", "CopyDirPatch", "Copy a directory of the host volume.", {
      src: hostVolumePath(),
      dst: target(),
      replace: replace(),
    }),
    branch("symlink", "SymlinkPatch", "Make a symbolic link.", {
      target: text({ minLength: 1, description: "What the link points to." }),
      link: target(),
      replace: replace(),
    }),
    branch("mkdir", "MkdirPatch", "Make a directory and its parents.", {
      path: target(),
      mode: mode(),
    }),
    branch("remove", "RemovePatch", "Remove a file or a directory, where there is one.", {
      path: target(),
    }),
    branch("append", "AppendPatch", "Append to a file.", { path: target(), content: content() }),
  ],
  { title: "PatchInput", description: "A change of the disk before the first start." },
);
export type PatchInput = Static<typeof PatchInput>;

function byteFaults(value: unknown): RuleFault[] {
  const faults: RuleFault[] = [];
  if (!Array.isArray(value)) return faults;
  for (let i = 0; i < value.length && faults.length < MAX_FAULTS; i++) {
    const byte: unknown = value[i];
    if (!Number.isInteger(byte) || (byte as number) < 0 || (byte as number) > 255)
      faults.push({ at: [i], message: "must be an integer from 0 to 255" });
  }
  return faults;
}
