import { fromConnectError } from "../../../runtime/rpc/errors.ts";
import { type Route, route } from "../../http/route.ts";
import { callFor } from "../../http/rpc.ts";
import { downloadRoute } from "./download.ts";
import type { FileDeps } from "./file-calls.ts";
import {
  copyFile,
  fileExists,
  makeDirectory,
  removeFile,
  renameFile,
  statFile,
} from "./file-operations.ts";
import { listingRoute } from "./listing.ts";
import { decodePath } from "./path-header.ts";
import { publicFile } from "./translate/file.ts";
import { uploadRoute } from "./upload.ts";

/** A tree takes as long as it takes. */
const TREE_TIMEOUT_MS = 30 * 60_000;

export function fileRoutes(deps: FileDeps): Route[] {
  return [
    listingRoute(deps),
    downloadRoute(deps),
    uploadRoute(deps),
    ...lookRoutes(deps),
    ...changeRoutes(deps),
  ];
}

function lookRoutes({ files, rpcTimeoutMs }: FileDeps): Route[] {
  return [
    route("GET", "/v1/volumes/{id}/files/stat", statFile, async (call) => {
      const options = callFor(call.caller, rpcTimeoutMs, call.signal);
      return { metadata: publicFile((await files.statFile(targetOf(call), options)).info) };
    }),
    route("GET", "/v1/volumes/{id}/files/exists", fileExists, async (call) => {
      const options = callFor(call.caller, rpcTimeoutMs, call.signal);
      const found = files.statFile(targetOf(call), options).then(
        () => true,
        (error: unknown) => {
          if (fromConnectError(error)?.reason === "VOLUME_FILE_NOT_FOUND") return false;
          throw error;
        },
      );
      return { exists: await found };
    }),
  ];
}

// What writes is not broken off when the client hangs up: it may be done already.

function changeRoutes({ files, rpcTimeoutMs }: FileDeps): Route[] {
  return [
    route("DELETE", "/v1/volumes/{id}/files", removeFile, async (call) => {
      const recursive = call.headers["x-msb-file-recursive"] === "true";
      const message = { ...targetOf(call), recursive };
      const answer = await files.removeFile(message, callFor(call.caller, TREE_TIMEOUT_MS));
      return done("file removed", answer, call);
    }),
    route("POST", "/v1/volumes/{id}/files/mkdir", makeDirectory, async (call) => {
      const message = { volumeId: volumeOf(call), path: call.body.path };
      const answer = await files.makeDirectory(message, callFor(call.caller, rpcTimeoutMs));
      return done("directory made", answer, call);
    }),
    route("POST", "/v1/volumes/{id}/files/copy", copyFile, async (call) => {
      const { from, to } = call.body;
      const message = { volumeId: volumeOf(call), from, to };
      const answer = await files.copyFile(message, callFor(call.caller, TREE_TIMEOUT_MS));
      return done("file copied", answer, call);
    }),
    route("POST", "/v1/volumes/{id}/files/rename", renameFile, async (call) => {
      const { from, to } = call.body;
      const message = { volumeId: volumeOf(call), from, to };
      const answer = await files.renameFile(message, callFor(call.caller, rpcTimeoutMs));
      return done("file renamed", answer, call);
    }),
  ];
}

function volumeOf({ params }: { params: { id: string } }): string {
  return params.id.toLowerCase();
}

function targetOf(call: { params: { id: string }; headers: { "x-msb-file-path"?: string } }) {
  return { volumeId: volumeOf(call), path: decodePath(call.headers["x-msb-file-path"]) };
}

/** @param answer of the service: an earlier request with the same idempotency key may have done it */
function done(message: string, answer: { replayed: boolean }, call: { replayed(): void }) {
  if (answer.replayed) call.replayed();
  return { message };
}
