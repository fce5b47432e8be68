import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { VolumeFileService } from "../../proto/gen/orchestrator/v1/volume_file_service_pb.ts";
import { requireCaller } from "../../runtime/rpc/context.ts";
import { makeDirectory, removeFile, renameFile } from "./domain/files/change-files.ts";
import type { FilesContext } from "./domain/files/context.ts";
import { copyFile } from "./domain/files/copy-file.ts";
import { listFiles, readFile, statFile } from "./domain/files/read-files.ts";
import { writeFile } from "./domain/files/write-file.ts";
import { infoToMessage, openedToMessage, rangeFromMessage } from "./file-messages.ts";
import { inPieces } from "./volumes/pieces.ts";
import { receiveUpload } from "./volumes/upload.ts";

/** Every RPC of orchestrator.v1's VolumeFileService: read the message, call the verb, write the message. */
export function createVolumeFileService(ctx: FilesContext): ServiceImpl<typeof VolumeFileService> {
  return {
    async *listFiles(request, call: HandlerContext) {
      for await (const entries of listFiles(ctx, requireCaller(call), request, call.signal))
        yield { entries: entries.map(infoToMessage) };
    },

    statFile: async (request, call) => ({
      info: infoToMessage(await statFile(ctx, requireCaller(call), request)),
    }),

    async *readFile(request, call: HandlerContext) {
      const file = await readFile(ctx, requireCaller(call), rangeFromMessage(request));
      try {
        yield openedToMessage(file);
        for await (const value of inPieces(file.content)) yield { part: { case: "data", value } };
      } finally {
        await file.close();
      }
    },

    writeFile: async (messages, call) => {
      const caller = requireCaller(call);
      const upload = await receiveUpload(messages, call.signal);
      try {
        return { info: infoToMessage(await writeFile(ctx, caller, upload.target, upload.content)) };
      } finally {
        upload.end();
      }
    },

    makeDirectory: (request, call) => makeDirectory(ctx, requireCaller(call), request, call.signal),

    copyFile: (request, call) => copyFile(ctx, requireCaller(call), request, call.signal),

    renameFile: (request, call) => renameFile(ctx, requireCaller(call), request, call.signal),

    removeFile: (request, call) => removeFile(ctx, requireCaller(call), request, call.signal),
  };
}
