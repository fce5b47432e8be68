import type { Client } from "@connectrpc/connect";
import type { VolumeService } from "../../../proto/gen/sandbox/v1/volume_service_pb.ts";
import { type Route, route } from "../../http/route.ts";
import { callFor } from "../../http/rpc.ts";
import {
  createVolume,
  deleteVolume,
  getHostVolume,
  getVolume,
  listVolumes,
  updateVolume,
} from "./operations.ts";
import { createVolumeMessage, publicVolume, updateVolumeMessage } from "./translate/volume.ts";

export interface VolumeDeps {
  volumes: Client<typeof VolumeService>;
  /** Deadline of one call to a service. */
  rpcTimeoutMs: number;
}

// What writes is not broken off when the client hangs up: it may be done already.

export function volumeRoutes({ volumes, rpcTimeoutMs }: VolumeDeps): Route[] {
  return [
    route("GET", "/v1/volumes", listVolumes, async ({ caller, signal }) => {
      const answer = await volumes.listVolumes({}, callFor(caller, rpcTimeoutMs, signal));
      return answer.volumes.map(publicVolume);
    }),
    route("POST", "/v1/volumes", createVolume, async ({ body, caller, replayed }) => {
      const message = createVolumeMessage(body);
      const { volume, replay } = await volumes.createVolume(message, callFor(caller, rpcTimeoutMs));
      if (replay) replayed();
      return publicVolume(volume);
    }),
    route("GET", "/v1/volumes/default", getHostVolume, async ({ caller, signal }) => {
      const options = callFor(caller, rpcTimeoutMs, signal);
      return publicVolume((await volumes.getHostVolume({}, options)).volume);
    }),
    route("GET", "/v1/volumes/{id}", getVolume, async ({ params, caller, signal }) => {
      const options = callFor(caller, rpcTimeoutMs, signal);
      return publicVolume(
        (await volumes.getVolume({ id: params.id.toLowerCase() }, options)).volume,
      );
    }),
    route("PATCH", "/v1/volumes/{id}", updateVolume, async ({ params, body, caller, replayed }) => {
      const message = updateVolumeMessage(params.id.toLowerCase(), body);
      const { volume, replay } = await volumes.updateVolume(message, callFor(caller, rpcTimeoutMs));
      if (replay) replayed();
      return publicVolume(volume);
    }),
    route("DELETE", "/v1/volumes/{id}", deleteVolume, async ({ params, caller, replayed }) => {
      const message = { id: params.id.toLowerCase() };
      const { replay } = await volumes.deleteVolume(message, callFor(caller, rpcTimeoutMs));
      if (replay) replayed();
      return { message: "volume deleted" };
    }),
  ];
}
