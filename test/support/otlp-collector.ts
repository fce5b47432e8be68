import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";

/** A span as a collector is told of it. */
export interface CollectedSpan {
  service: string;
  name: string;
  traceId: string;
  spanId: string;
  /** "" : it has none. */
  parentId: string;
  /** As the protocol numbers them: 1 internal, 2 server, 3 client, 5 consumer. */
  kind: number;
  failed: boolean;
  attributes: Record<string, unknown>;
}

/** A collector of traces, by OTLP over HTTP with protobuf. */
export async function startCollector() {
  const spans: CollectedSpan[] = [];
  const headers: IncomingMessage["headers"][] = [];
  const server = createServer(async (request, response) => {
    const body = Buffer.concat(await Array.fromAsync(request));
    headers.push(request.headers);
    if (request.url === "/v1/traces") spans.push(...spansOf(body));
    response.writeHead(request.url === "/v1/traces" ? 200 : 404).end();
  }).listen(0, "127.0.0.1");
  await new Promise((listening) => server.once("listening", listening));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    headers,
    close: async () => {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}

/** Of an `ExportTraceServiceRequest`; see opentelemetry/proto/trace/v1/trace.proto. */
function spansOf(request: Uint8Array): CollectedSpan[] {
  return (
    fields(request)[1]?.flatMap((resourceSpans) => {
      const of = fields(resourceSpans);
      const resource = fields(of[1]?.[0] ?? EMPTY);
      const service = String(attributesOf(resource[1] ?? [])["service.name"]);
      const scopes = (of[2] ?? []).flatMap((scope) => fields(scope)[2] ?? []);
      return scopes.map((span) => toSpan(service, span));
    }) ?? []
  );
}

function toSpan(service: string, span: Uint8Array): CollectedSpan {
  const {
    1: traceId,
    2: spanId,
    4: parentId,
    5: name,
    6: kind,
    9: attributes,
    15: status,
  } = fields(span);
  const hex = (all: Uint8Array[] | undefined) => Buffer.from(all?.[0] ?? EMPTY).toString("hex");
  return {
    service,
    name: text(name?.[0]),
    traceId: hex(traceId),
    spanId: hex(spanId),
    parentId: hex(parentId),
    kind: kind?.[0]?.[0] ?? 0,
    failed: fields(status?.[0] ?? EMPTY)[3]?.[0]?.[0] === 2,
    attributes: attributesOf(attributes ?? []),
  };
}

function attributesOf(pairs: readonly Uint8Array[]): Record<string, unknown> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const { 1: key, 2: value } = fields(pair);
      const { 1: string, 3: integer } = fields(value?.[0] ?? EMPTY);
      return [text(key?.[0]), string ? text(string[0]) : integer && varint(integer[0])];
    }),
  );
}

const EMPTY = new Uint8Array();
const text = (bytes: Uint8Array = EMPTY) => Buffer.from(bytes).toString();

/** What a message has, by field number: bytes as they are, a varint as its bytes. */
function fields(message: Uint8Array): Record<number, Uint8Array[]> {
  const reader = new BinaryReader(message);
  const found: Record<number, Uint8Array[]> = {};
  while (reader.pos < reader.len) {
    const [number, type] = reader.tag();
    const from = reader.pos;
    const value = type === WireType.LengthDelimited ? reader.bytes() : undefined;
    if (!value) reader.skip(type);
    found[number] = [...(found[number] ?? []), value ?? message.subarray(from, reader.pos)];
  }
  return found;
}

function varint(bytes: Uint8Array = EMPTY): number {
  return Number(new BinaryReader(bytes).int64());
}
