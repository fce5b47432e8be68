import { ChannelCredentials, Client, Metadata, type ServiceDefinition } from "@grpc/grpc-js";
import { load } from "@grpc/proto-loader";
import type { Connection, GrpcTarget } from "./job.ts";

/** One more adds nothing to what a client can send, each being a session of its own. */
const CHANNELS = 4;

/** As an internal caller has it: `@grpc/grpc-js` with the proto files. */
export async function openGrpc(target: GrpcTarget, count: number): Promise<Connection[]> {
  const { address, method: name, requests } = target;
  const definition = await load("sandbox/v1/sandbox_service.proto", {
    includeDirs: ["proto", "third_party"],
    keepCase: true,
    enums: String,
    longs: String,
  });
  // Of what the loader returns, names of services stand for services.
  const method = (definition["sandbox.v1.SandboxService"] as ServiceDefinition)[name];
  if (!method) throw new Error(`there is no method ${name}`);
  const metadata = Metadata.fromHttp2Headers(target.metadata);
  const channels = Array.from({ length: CHANNELS }, () => {
    // Channels to one address share a session unless told otherwise.
    const options = { "grpc.use_local_subchannel_pool": 1 };
    return new Client(address, ChannelCredentials.createInsecure(), options);
  });
  let next = 0;
  return Array.from({ length: count }, (_, at) => {
    const client = channels[at % CHANNELS] as Client;
    return {
      send: (done) => {
        const request = requests[next++ % requests.length];
        const { path, requestSerialize, responseDeserialize } = method;
        client.makeUnaryRequest(
          path,
          requestSerialize,
          responseDeserialize,
          request,
          metadata,
          (error) => done(error ? error.code : 0),
        );
      },
      close: () => client.close(),
    };
  });
}
