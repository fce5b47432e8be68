import { once } from "node:events";
import { Agent, request as httpRequest, type IncomingMessage } from "node:http";
import { buffer } from "node:stream/consumers";

export interface Answer {
  status: number;
  body: Buffer;
}

/** Makes a request of whoever it calls for, and throws where there is no whole answer. */
export type Send = (
  method: string,
  path: string,
  body?: string | Uint8Array,
  headers?: Record<string, string>,
) => Promise<Answer>;

/** Through connections that are kept, as `fetch` keeps them. */
export function byFetch(url: string, key: string): Send {
  return async (method, path, body, headers = {}) => {
    const response = await fetch(url + path, {
      method,
      headers: { ...headersOf(key, body), ...headers },
      ...(body !== undefined && { body: body as NonNullable<RequestInit["body"]> }),
    });
    return { status: response.status, body: Buffer.from(await response.arrayBuffer()) };
  };
}

/** Through connections of node:http: kept ones, or a new one for each request. */
export function byHttp(url: string, key: string, keepAlive: boolean): Send {
  const agent = new Agent({ keepAlive, maxSockets: 2 });
  return async (method, path, body, headers = {}) => {
    const request = httpRequest(url + path, {
      agent,
      method,
      headers: { ...headersOf(key, body), ...headers },
    });
    request.end(body);
    const [response] = (await once(request, "response")) as [IncomingMessage];
    return { status: response.statusCode ?? 0, body: await buffer(response) };
  };
}

function headersOf(key: string, body: string | Uint8Array | undefined): Record<string, string> {
  const authorization = `Bearer ${key}`;
  if (body === undefined) return { authorization };
  const type = typeof body === "string" ? "application/json" : "application/octet-stream";
  return { authorization, "content-type": type, "content-length": String(Buffer.byteLength(body)) };
}
