import Type, { type Static } from "typebox";
import { int64, nullable, text, words } from "../../../validation/schema.ts";
import { encodedPathFault } from "../path-header.ts";

const FILE_KINDS = ["file", "directory"] as const;

const time = (description: string) =>
  nullable(Type.String({ format: "date-time" }), { description });

export const FileInfo = Type.Object(
  {
    path: Type.String({ description: "From the volume's root, with a leading `/`." }),
    kind: words(FILE_KINDS),
    size: int64(0, { description: "In bytes." }),
    mode: Type.Integer({ description: "Permission bits.", minimum: 0, maximum: 0o7777 }),
    uid: Type.Integer({ minimum: 0 }),
    gid: Type.Integer({ minimum: 0 }),
    readonly: Type.Boolean({ description: "Nobody may write it, by its mode." }),
    accessed_at: time("When it was last read, as far as that is kept."),
    modified_at: time("When its content last changed."),
    created_at: time("When it was made; null where the file system does not tell."),
  },
  { title: "FileInfo", description: "A symbolic link is shown as what it leads to." },
);
export type FileInfo = Static<typeof FileInfo>;

export const FileList = Type.Object(
  { entries: Type.Array(FileInfo, { description: "In no promised order." }) },
  { title: "FileList" },
);
export const FileStat = Type.Object({ metadata: FileInfo }, { title: "FileStat" });
export const FileExists = Type.Object({ exists: Type.Boolean() }, { title: "FileExists" });
/** A file, as the bytes that it is. */
export const Content = Type.Unsafe<string>({ type: "string", format: "binary" });

const encodedPath = (description: string) =>
  Type.String({
    description: `${description} In UTF-8, as unpadded base64url.`,
    examples: ["ZGF0YS9ub3Rlcy50eHQ"],
    rule: encodedPathFault,
  });

export const DirectoryHeaders = Type.Object({
  "x-msb-file-path": Type.Optional(
    encodedPath("The path, from the volume's root; empty or absent: the root."),
  ),
});
export const FileHeaders = Type.Object({
  "x-msb-file-path": encodedPath("The path, from the volume's root."),
});
export const RemoveHeaders = Type.Object({
  ...FileHeaders.properties,
  "x-msb-file-recursive": Type.Optional(
    words(["true", "false"], { description: "Also a directory with content.", default: "false" }),
  ),
});
export type RemoveHeaders = Static<typeof RemoveHeaders>;

export const ReadHeaders = Type.Object({
  ...FileHeaders.properties,
  Range: Type.Optional(
    Type.String({
      description: "One range of bytes, such as `bytes=0-1023`, `bytes=1024-` or `bytes=-512`.",
    }),
  ),
  "If-Match": Type.Optional(
    Type.String({ description: "`ETag`s; where the content is none of them, 412." }),
  ),
  "If-Range": Type.Optional(
    Type.String({ description: "An `ETag`: the range is of this content, else all is sent." }),
  ),
  "If-None-Match": Type.Optional(
    Type.String({ description: "`ETag`s; where the content is one of them, 304." }),
  ),
  "If-Modified-Since": Type.Optional(
    Type.String({ description: "Without `If-None-Match`: where it is not newer, 304." }),
  ),
});

export const MakeDirectoryRequest = Type.Object(
  { path: text({ description: "Missing parents are made; one that is there is left as it is." }) },
  { title: "MakeDirectoryRequest" },
);
export const MoveRequest = Type.Object(
  {
    from: text({ description: "What is there." }),
    to: text({ description: "Where it is to be; missing parents are made." }),
  },
  { title: "MoveRequest" },
);
