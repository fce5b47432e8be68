import type { ServiceImpl } from "@connectrpc/connect";
import type { VolumeService } from "../../proto/gen/sandbox/v1/volume_service_pb.ts";
import { requireCaller } from "../../runtime/rpc/context.ts";
import type { SandboxContext } from "./context.ts";
import * as change from "./domain/change-volume.ts";
import { createVolume } from "./domain/create-volume.ts";
import type { Answered } from "./domain/idempotency.ts";
import * as read from "./domain/read-volumes.ts";
import type { Volume } from "./domain/volume.ts";
import * as use from "./domain/volume-use.ts";
import * as message from "./messages/volumes.ts";
import { replayToMessage } from "./messages.ts";

/** Every RPC of sandbox.v1's VolumeService: read the message, call the verb, write the message. */
export function createVolumeService(ctx: SandboxContext): ServiceImpl<typeof VolumeService> {
  return {
    createVolume: async (request, call) => {
      const input = message.createVolumeFromMessage(request);
      return changed(await createVolume(ctx, requireCaller(call), input));
    },

    getVolume: async ({ id }, call) => answer(await read.getVolume(ctx, requireCaller(call), id)),

    getHostVolume: async (_request, call) =>
      answer(await read.getHostVolume(ctx, requireCaller(call))),

    listVolumes: async (_request, call) => {
      const volumes = await read.listVolumes(ctx, requireCaller(call));
      return { volumes: volumes.map(message.volumeToMessage) };
    },

    updateVolume: async (request, call) => {
      const to = message.updateVolumeFromMessage(request);
      return changed(await change.updateVolume(ctx, requireCaller(call), request.id, to));
    },

    deleteVolume: async (request, call) => {
      const gone = await change.deleteVolume(ctx, requireCaller(call), request.id);
      return { id: gone.id, name: gone.name ?? "", ...replayToMessage(gone) };
    },

    reserveVolumeBytes: async (request, call) => {
      await use.reserveBytes(ctx, requireCaller(call), message.writeFromMessage(request));
      return {};
    },

    settleVolumeWrite: async ({ writeId, bytes }) => {
      await use.settleWrite(ctx, { id: writeId, bytes });
      return {};
    },

    reportVolumeUse: async (request) => {
      await use.reportUse(ctx, message.measurementFromMessage(request));
      return {};
    },

    reportVolumeRemoved: async ({ volumeId }) => {
      await use.reportVolumeRemoved(ctx, volumeId);
      return {};
    },
  };
}

function answer(volume: Volume) {
  return { volume: message.volumeToMessage(volume) };
}

function changed(volume: Answered<Volume>) {
  return { ...answer(volume), ...replayToMessage(volume) };
}
