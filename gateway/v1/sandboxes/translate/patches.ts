import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type Patch, PatchSchema } from "../../../../proto/gen/sandbox/v1/spec_pb.ts";
import { given } from "../../values.ts";
import type { PatchInput } from "../schema/patches.ts";

/** One way only: patches are never shown. */
export function patchMessage(patch: PatchInput): Patch {
  return create(PatchSchema, { kind: kindInit(patch) });
}

function kindInit(patch: PatchInput): NonNullable<MessageInitShape<typeof PatchSchema>["kind"]> {
  switch (patch.type) {
    case "text": {
      const { path, content } = patch;
      return { case: "text", value: { path, content, ...writing(patch) } };
    }
    case "file": {
      const { path, content } = patch;
      return { case: "file", value: { path, content: new Uint8Array(content), ...writing(patch) } };
    }
    case "copy_file": {
      const { src, dst } = patch;
      return { case: "copyFile", value: { src, dst, ...writing(patch) } };
    }
    case "copy_dir": {
      const { src, dst, replace } = patch;
      return { case: "copyDir", value: { src, dst, replace: replace ?? false } };
    }
    case "symlink": {
      const { target, link, replace } = patch;
      return { case: "symlink", value: { target, link, replace: replace ?? false } };
    }
    case "mkdir":
      return { case: "mkdir", value: { path: patch.path, mode: given(patch.mode) } };
    case "remove":
      return { case: "remove", value: { path: patch.path } };
    case "append":
      return { case: "append", value: { path: patch.path, content: patch.content } };
  }
}

function writing({ mode, replace }: PatchInput & { type: "text" | "file" | "copy_file" }) {
  return { mode: given(mode), replace: replace ?? false };
}
