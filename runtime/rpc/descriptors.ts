import {
  type DescEnum,
  type DescExtension,
  type DescFile,
  type DescMessage,
  type DescService,
  toBinary,
} from "@bufbuild/protobuf";
import { nestedTypes } from "@bufbuild/protobuf/reflect";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";

/** What is defined where, in some files and all that they import. */
export interface DescriptorIndex {
  /** By path, such as `sandbox/v1/spec.proto`. */
  file(path: string): DescFile | undefined;
  /** By the full name of a type, service, method or field that it defines. */
  fileOf(symbol: string): DescFile | undefined;
  /** Extensions of a message by number; undefined where the message is unknown. */
  extensionsOf(typeName: string): ReadonlyMap<number, DescExtension> | undefined;
}

export function indexDescriptors(roots: readonly DescFile[]): DescriptorIndex {
  const files = withImports(roots);
  const paths = new Map(files.map((file) => [file.proto.name, file]));
  const symbols = new Map<string, DescFile>();
  const extensions = new Map<string, Map<number, DescExtension>>();
  for (const file of files)
    for (const type of nestedTypes(file)) {
      for (const symbol of symbolsOf(type)) symbols.set(symbol, file);
      if (type.kind === "message") extensions.set(type.typeName, new Map());
    }
  for (const type of files.flatMap((file) => [...nestedTypes(file)]))
    if (type.kind === "extension") extensions.get(type.extendee.typeName)?.set(type.number, type);
  return {
    file: (path) => paths.get(path),
    fileOf: (symbol) => symbols.get(symbol),
    extensionsOf: (typeName) => extensions.get(typeName),
  };
}

/** The files and all that they import, directly or not, each once; a file comes before its imports. */
export function withImports(roots: readonly DescFile[]): DescFile[] {
  const seen = new Set(roots);
  // A set is iterated in order of insertion, with what is added on the way.
  for (const { dependencies } of seen) for (const file of dependencies) seen.add(file);
  return [...seen];
}

/** A serialized google.protobuf.FileDescriptorProto. */
export function serializeFile({ proto }: DescFile): Uint8Array {
  return toBinary(FileDescriptorProtoSchema, proto);
}

function symbolsOf(type: DescMessage | DescEnum | DescExtension | DescService): string[] {
  const within = (member: { name: string }) => `${type.typeName}.${member.name}`;
  if (type.kind === "service") return [type.typeName, ...type.methods.map(within)];
  if (type.kind === "message") return [type.typeName, ...type.fields.map(within)];
  return [type.typeName];
}
