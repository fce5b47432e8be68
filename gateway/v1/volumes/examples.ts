import type { FileInfo } from "./schema/file.ts";
import type { Volume } from "./schema/volume.ts";

export const exampleHost: Volume = {
  id: "019a9f2d-11d0-7b6e-8f03-2a7c9d5e4b10",
  kind: "host",
  name: null,
  status: "active",
  storage: "block",
  capacity_bytes: null,
  used_bytes: 0,
  labels: {},
  created_at: "2026-11-21T08:14:02.004Z",
  updated_at: "2026-11-21T08:14:02.004Z",
};

export const exampleVolume: Volume = {
  id: "019a9f30-4c1e-7d2a-9e55-6b8f0a1c2d3e",
  kind: "managed",
  name: "datasets",
  status: "active",
  storage: "block",
  capacity_bytes: 10 * 2 ** 30,
  used_bytes: 4096,
  labels: { team: "build" },
  created_at: "2026-11-21T08:20:11.730Z",
  updated_at: "2026-11-21T08:20:11.730Z",
};

export const exampleFile: FileInfo = {
  path: "/data/notes.txt",
  kind: "file",
  size: 11,
  mode: 0o644,
  uid: 0,
  gid: 0,
  readonly: false,
  accessed_at: "2026-11-21T08:21:40.218Z",
  modified_at: "2026-11-21T08:21:40.218Z",
  created_at: "2026-11-21T08:21:40.218Z",
};

export const exampleContent = "hello there";
