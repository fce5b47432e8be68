import { createFileRegistry, type FileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Client, credentials, Metadata, type ServiceDefinition, status } from "@grpc/grpc-js";
import { load } from "@grpc/proto-loader";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startServer, TOKEN } from "./support.ts";

let server: Awaited<ReturnType<typeof startServer>>;
let client: Client;
beforeAll(async () => {
  server = await startServer();
  client = new Client(`127.0.0.1:${server.port}`, credentials.createInsecure());
});
afterAll(async () => {
  client.close();
  await server.close();
});

interface Answer {
  list_services_response?: { service: { name: string }[] };
  file_descriptor_response?: { file_descriptor_proto: Buffer[] };
  all_extension_numbers_response?: { base_type_name: string; extension_number: number[] };
  error_response?: { error_code: number; error_message: string };
}

describe.each(["v1", "v1alpha"])("reflection %s", (version) => {
  test("lists the services", async () => {
    const [answer] = await ask({ list_services: "*" });
    expect(answer?.list_services_response?.service.map(({ name }) => name)).toEqual([
      "sandbox.v1.SandboxService",
      "organization.v1.OrganizationService",
      "grpc.health.v1.Health",
      "grpc.reflection.v1.ServerReflection",
      "grpc.reflection.v1alpha.ServerReflection",
    ]);
  });

  test.each([
    { file_containing_symbol: "sandbox.v1.SandboxService" },
    { file_containing_symbol: "sandbox.v1.SandboxService.GetSandbox" },
    { file_containing_symbol: "sandbox.v1.GetSandboxRequest.key" },
    { file_by_filename: "sandbox/v1/sandbox_service.proto" },
  ])("describes a service with all that it needs: %j", async (question) => {
    const [answer] = await ask(question);
    const registry = registryOf(answer);
    const service = registry.getService("sandbox.v1.SandboxService");
    expect(service?.method.getSandbox?.input.typeName).toBe("sandbox.v1.GetSandboxRequest");
    expect(registry.getMessage("sandbox.v1.SandboxSpec")?.field.mounts).toBeDefined();
  });

  test("describes error details", async () => {
    const [answer] = await ask({ file_containing_symbol: "google.rpc.ErrorInfo" });
    expect(registryOf(answer).getMessage("google.rpc.ErrorInfo")).toBeDefined();
  });

  test("knows extensions", async () => {
    const containing_type = "google.protobuf.FieldOptions";
    const [numbers, file] = await ask(
      { all_extension_numbers_of_type: containing_type },
      { file_containing_extension: { containing_type, extension_number: 1159 } },
    );
    expect(numbers?.all_extension_numbers_response).toEqual({
      base_type_name: containing_type,
      extension_number: [1159, 1160],
    });
    expect(registryOf(file).getExtension("buf.validate.field")).toBeDefined();
  });

  test("says of what it does not know that it is not found, and goes on", async () => {
    const extension = { containing_type: "google.protobuf.FieldOptions", extension_number: 7 };
    const answers = await ask(
      { file_by_filename: "a.proto" },
      { file_containing_symbol: "a.B" },
      { file_containing_extension: extension },
      { all_extension_numbers_of_type: "a.B" },
    );
    expect(answers.map(({ error_response }) => error_response?.error_code)).toEqual(
      Array(4).fill(status.NOT_FOUND),
    );
  });

  test("needs the token", async () => {
    await expect(askAs("wrong", [{ list_services: "*" }])).rejects.toMatchObject({
      code: status.UNAUTHENTICATED,
    });
  });

  /** Asks everything on one stream, as reflection clients do. */
  const ask = (...questions: object[]) => askAs(TOKEN, questions);

  async function askAs(token: string, questions: object[]): Promise<Answer[]> {
    const definition = await load(`grpc/reflection/${version}/reflection.proto`, {
      includeDirs: ["third_party"],
      keepCase: true,
    });
    const service = definition[`grpc.reflection.${version}.ServerReflection`];
    // Of what the loader returns, names of services stand for services.
    const method = (service as ServiceDefinition).ServerReflectionInfo;
    if (method === undefined) throw new Error("no such method");
    const { path, requestSerialize, responseDeserialize } = method;
    const metadata = new Metadata();
    metadata.set("authorization", `Bearer ${token}`);
    const call = client.makeBidiStreamRequest(
      path,
      requestSerialize,
      responseDeserialize,
      metadata,
    );
    for (const question of questions) call.write(question);
    call.end();
    return call.toArray();
  }
});

/** Everything in an answer's files; fails where they need a file that is not there. */
function registryOf(answer: Answer | undefined): FileRegistry {
  const bytes = answer?.file_descriptor_response?.file_descriptor_proto ?? [];
  const files = bytes.map((file) => fromBinary(FileDescriptorProtoSchema, file));
  const build = (name: string | undefined): FileRegistry => {
    const file = files.find((candidate) => candidate.name === name);
    if (file === undefined) throw new Error(`no file ${name}`);
    return createFileRegistry(file, (path) => build(path).getFile(path));
  };
  return build(files[0]?.name);
}
