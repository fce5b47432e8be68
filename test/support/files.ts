import type { Api } from "./program.ts";

/** The header in which a path of a volume travels. */
export function pathHeader(path: string): Record<string, string> {
  return { "x-msb-file-path": Buffer.from(path).toString("base64url") };
}

export function putFile(api: Api, volumeId: string, path: string, content: string | Uint8Array) {
  return api("PUT", `/v1/volumes/${volumeId}/files/content`, undefined, {
    body: content,
    headers: { ...pathHeader(path), "content-type": "application/octet-stream" },
  });
}

/** @returns the content, which is no JSON; an answer that is no success in the same way */
export async function getFile(url: string, key: string, volumeId: string, path: string) {
  const response = await fetch(`${url}/v1/volumes/${volumeId}/files/content`, {
    headers: { authorization: `Bearer ${key}`, ...pathHeader(path) },
  });
  return { status: response.status, text: await response.text() };
}
