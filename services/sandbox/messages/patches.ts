import type * as pb from "../../../proto/gen/sandbox/v1/spec_pb.ts";
import type { Patch } from "../domain/spec.ts";

/** A patch without a kind is no patch; validation refuses it before this. */
export function patchFromMessage({ kind }: pb.Patch): Patch[] {
  switch (kind.case) {
    case "text": {
      const { path, content, mode = null, replace } = kind.value;
      return [{ kind: "text", path, content, mode, replace }];
    }
    case "file": {
      const { path, mode = null, replace } = kind.value;
      const content = Buffer.from(kind.value.content).toString("base64");
      return [{ kind: "file", path, content, mode, replace }];
    }
    case "copyFile": {
      const { src, dst, mode = null, replace } = kind.value;
      return [{ kind: "copy_file", src, dst, mode, replace }];
    }
    case "copyDir": {
      const { src, dst, replace } = kind.value;
      return [{ kind: "copy_dir", src, dst, replace }];
    }
    case "symlink": {
      const { target, link, replace } = kind.value;
      return [{ kind: "symlink", target, link, replace }];
    }
    case "mkdir":
      return [{ kind: "mkdir", path: kind.value.path, mode: kind.value.mode ?? null }];
    case "remove":
      return [{ kind: "remove", path: kind.value.path }];
    case "append":
      return [{ kind: "append", path: kind.value.path, content: kind.value.content }];
    default:
      return [];
  }
}
