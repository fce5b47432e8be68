import type { DescFile, DescService } from "@bufbuild/protobuf";
import { Code, type ConnectRouter } from "@connectrpc/connect";
import {
  ServerReflection,
  type ServerReflectionRequest,
} from "../../proto/gen/grpc/reflection/v1/reflection_pb.ts";
import {
  type ServerReflectionRequest as ServerReflectionRequestV1Alpha,
  ServerReflection as ServerReflectionV1Alpha,
} from "../../proto/gen/grpc/reflection/v1alpha/reflection_pb.ts";
import {
  type DescriptorIndex,
  indexDescriptors,
  serializeFile,
  withImports,
} from "./descriptors.ts";

type Question = (ServerReflectionRequest | ServerReflectionRequestV1Alpha)["messageRequest"];
/** Plain, so that it fits the response of either version. */
type Answer =
  | { case: "listServicesResponse"; value: { service: { name: string }[] } }
  | { case: "fileDescriptorResponse"; value: { fileDescriptorProto: Uint8Array[] } }
  | {
      case: "allExtensionNumbersResponse";
      value: { baseTypeName: string; extensionNumber: number[] };
    }
  | { case: "errorResponse"; value: { errorCode: number; errorMessage: string } };

/**
 * Server reflection, v1 and v1alpha, whose messages differ by their names alone.
 * @param services what `list_services` lists
 * @param details files of error details, so that clients can show those too
 */
export function reflectionRoutes(services: readonly DescService[], details: readonly DescFile[]) {
  const listed = [...services, ServerReflection, ServerReflectionV1Alpha];
  const names = listed.map(({ typeName }) => typeName);
  const index = indexDescriptors([...listed.map(({ file }) => file), ...details]);

  async function* serverReflectionInfo<
    Request extends ServerReflectionRequest | ServerReflectionRequestV1Alpha,
  >(requests: AsyncIterable<Request>) {
    for await (const request of requests)
      yield {
        validHost: request.host,
        originalRequest: request,
        messageResponse: answer(index, names, request.messageRequest),
      };
  }
  return (router: ConnectRouter) => {
    router.service(ServerReflection, { serverReflectionInfo });
    router.service(ServerReflectionV1Alpha, { serverReflectionInfo });
  };
}

function answer(index: DescriptorIndex, names: readonly string[], question: Question): Answer {
  switch (question.case) {
    case "listServices":
      return {
        case: "listServicesResponse",
        value: { service: names.map((name) => ({ name })) },
      };
    case "fileByFilename":
      return files(index.file(question.value));
    case "fileContainingSymbol":
      return files(index.fileOf(question.value));
    case "fileContainingExtension": {
      const { containingType, extensionNumber } = question.value;
      return files(index.extensionsOf(containingType)?.get(extensionNumber)?.file);
    }
    case "allExtensionNumbersOfType": {
      const extensions = index.extensionsOf(question.value);
      if (extensions === undefined) return notFound();
      return {
        case: "allExtensionNumbersResponse",
        value: { baseTypeName: question.value, extensionNumber: [...extensions.keys()] },
      };
    }
    default:
      return failure(Code.InvalidArgument, "empty request");
  }
}

function files(file: DescFile | undefined): Answer {
  if (file === undefined) return notFound();
  const fileDescriptorProto = withImports([file]).map(serializeFile);
  return { case: "fileDescriptorResponse", value: { fileDescriptorProto } };
}

function notFound(): Answer {
  return failure(Code.NotFound, "not found");
}

function failure(errorCode: Code, errorMessage: string): Answer {
  return { case: "errorResponse", value: { errorCode, errorMessage } };
}
