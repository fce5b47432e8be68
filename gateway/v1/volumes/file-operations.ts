import { conflict, contentChanged, rangeRefused } from "../../errors.ts";
import { operation } from "../../http/operation.ts";
import { Message } from "../sandboxes/schema/sandbox.ts";
import { exampleContent, exampleFile } from "./examples.ts";
import {
  Content,
  DirectoryHeaders,
  FileExists,
  FileHeaders,
  FileList,
  FileStat,
  MakeDirectoryRequest,
  MoveRequest,
  ReadHeaders,
  RemoveHeaders,
} from "./schema/file.ts";
import { VolumeParams } from "./schema/volume.ts";

const ofVolume = { tag: "Files", params: VolumeParams };
const missing = ["volume_not_found", "volume_file_not_found"] as const;
const always = ["invalid_sandbox_config", "invalid_volume_path"] as const;
const inTheWay = conflict("'/data' is a directory");
const validators = ["ETag", "Last-Modified"] as const;
const whole = ["Accept-Ranges", "Content-Length", ...validators] as const;

export const listFiles = operation({
  ...ofVolume,
  id: "listFiles",
  summary: "List a directory",
  description: `All that is in it, in no promised order. Links that lead nowhere or out of the volume are left out, and so is what
is neither file nor directory. A list that breaks off is not whole.`,
  headers: DirectoryHeaders,
  response: FileList,
  example: { entries: [exampleFile] },
  errors: [...always, ...missing],
  refusals: [inTheWay],
});

export const removeFile = operation({
  ...ofVolume,
  id: "removeFile",
  summary: "Remove a file or a directory",
  description:
    "A directory with content only with `x-msb-file-recursive: true`; of a link the link itself.",
  headers: RemoveHeaders,
  response: Message,
  example: { message: "file removed" },
  errors: [...always, ...missing],
  refusals: [inTheWay],
});

export const readFile = operation({
  ...ofVolume,
  id: "readFile",
  summary: "Read a file",
  description: `Its bytes, or with \`Range\` some of them: one range; of several all is sent. What goes wrong behind the first byte breaks
the connection off.`,
  headers: ReadHeaders,
  media: "application/octet-stream",
  response: Content,
  example: exampleContent,
  responseHeaders: whole,
  variants: [
    {
      status: 206,
      description: "The range.",
      responseHeaders: [...whole, "Content-Range"],
      hasBody: true,
    },
    {
      status: 304,
      description: "It is what the client has.",
      responseHeaders: ["Accept-Ranges", ...validators],
      hasBody: false,
    },
  ],
  errors: [...always, ...missing],
  refusals: [inTheWay, contentChanged(), rangeRefused(1024n)],
});

export const writeFile = operation({
  ...ofVolume,
  id: "writeFile",
  summary: "Write a file",
  description: `The body is the content, of any type, with or without a length. The file appears wholly, in the place of one that is
there, or not at all; missing parents are made. Conditions, such as \`If-None-Match\`, are refused: nothing would keep them. It takes no idempotency key: a
repeat writes the same again.`,
  headers: FileHeaders,
  body: {
    media: "application/octet-stream",
    schema: Content,
    optional: true,
    example: exampleContent,
  },
  response: FileStat,
  example: { metadata: exampleFile },
  errors: [...always, "quota_exceeded", "volume_not_found"],
  refusals: [inTheWay],
});

export const statFile = operation({
  ...ofVolume,
  id: "statFile",
  summary: "Look at a file or a directory",
  description: "What it is, not what is in it.",
  headers: DirectoryHeaders,
  response: FileStat,
  example: { metadata: exampleFile },
  errors: [...always, ...missing],
});

export const fileExists = operation({
  ...ofVolume,
  id: "fileExists",
  summary: "Ask whether a file or a directory exists",
  description: "A link exists where what it leads to does.",
  headers: DirectoryHeaders,
  response: FileExists,
  example: { exists: true },
  errors: [...always, "volume_not_found"],
});

export const makeDirectory = operation({
  ...ofVolume,
  id: "makeDirectory",
  summary: "Make a directory",
  description: "With its parents; one that is there is left as it is.",
  body: { schema: MakeDirectoryRequest, example: { path: "/data" } },
  response: Message,
  example: { message: "directory made" },
  errors: [...always, "volume_not_found"],
  refusals: [inTheWay],
});

const move = { from: "/data/notes.txt", to: "/archive/notes.txt" };

export const copyFile = operation({
  ...ofVolume,
  id: "copyFile",
  summary: "Copy a file or a directory",
  description:
    "A directory with all that is in it. Modes, owners and times are kept, links are copied as links.",
  body: { schema: MoveRequest, example: move },
  response: Message,
  example: { message: "file copied" },
  errors: [...always, "quota_exceeded", ...missing],
  refusals: [inTheWay],
});

export const renameFile = operation({
  ...ofVolume,
  id: "renameFile",
  summary: "Rename a file or a directory",
  description:
    "In one step; a file takes the place of one that is there. Of a link the link itself.",
  body: { schema: MoveRequest, example: move },
  response: Message,
  example: { message: "file renamed" },
  errors: [...always, ...missing],
  refusals: [inTheWay],
});
