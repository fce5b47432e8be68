import type { Answer, Request } from "./http.ts";
import type { Kind, Ref } from "./ref.ts";

const MOST = 40;

/** A query that goes on where a page ended. */
interface NextPage {
  operation: string;
  query: string;
}

/** What is there: learned from answers, forgotten when it is deleted. */
export class Pool {
  readonly #sandboxes = new Map<string, string>();
  readonly #volumes = new Map<string, string>();
  readonly #events: string[] = [];
  readonly #files: string[] = [];
  readonly #etags: string[] = [];
  readonly #pages: NextPage[] = [];

  /** The text that stands for it in a request; of what there is none of yet, something that is not there. */
  named = ({ kind, pick }: Ref): string => {
    const all = this.#all(kind);
    return all[pick % all.length] ?? "nothing";
  };

  /** A query that an earlier page of this operation led to. */
  page(operation: string, pick: number): string | undefined {
    const own = this.#pages.filter((page) => page.operation === operation);
    return own[pick % own.length]?.query;
  }

  /** Sandboxes and volumes that are too many by now. */
  surplus(): { sandboxes: string[]; volumes: string[] } {
    const beyond = (all: Map<string, string>) => [...all.keys()].slice(0, -MOST);
    return { sandboxes: beyond(this.#sandboxes), volumes: beyond(this.#volumes) };
  }

  forget(id: string): void {
    this.#sandboxes.delete(id);
    this.#volumes.delete(id);
  }

  /** Learns from a success. */
  learn(operation: string, request: Request, { body, headers }: Answer): void {
    const found = body as Partial<Record<string, string>>;
    const about = request.about;
    if (operation === "createSandbox" || operation === "updateSandbox")
      this.#sandboxes.set(String(found.id), String(found.name));
    if (/^(create|update)Volume$/.test(operation))
      this.#volumes.set(String(found.id), String(found.name));
    if (/^delete|^destroy/.test(operation) && about) this.forget(about.toLowerCase());
    if (operation === "listEvents") this.#learnEvents(body);
    if (operation === "writeFile") add(this.#files, request.headers["x-msb-file-path"]);
    if (headers.etag) add(this.#etags, headers.etag);
    if (typeof found.next_cursor === "string")
      add(this.#pages, { operation, query: nextQuery(request.query, found.next_cursor) });
  }

  #learnEvents(body: unknown): void {
    for (const { id } of (body as { data: { id: string }[] }).data.slice(0, 3))
      add(this.#events, id);
  }

  #all(kind: Kind): string[] {
    switch (kind) {
      case "sandbox":
        return withDefault([...this.#sandboxes.keys()]);
      case "sandboxName":
        return withDefault([...this.#sandboxes.values()]);
      case "volume":
        return withDefault([...this.#volumes.keys()]);
      case "volumeName":
        return withDefault([...this.#volumes.values()]);
      case "event":
        return withDefault(this.#events);
      case "file":
        return this.#files.length > 0 ? this.#files : ["YQ"];
      case "path":
        return this.#all("file").map((file) => Buffer.from(file, "base64url").toString());
      case "etag":
        return this.#etags.length > 0 ? this.#etags : ['"0"'];
    }
  }
}

const NOBODY = "00000000-0000-7000-8000-000000000000";

function withDefault(all: string[]): string[] {
  return all.length > 0 ? all : [NOBODY];
}

function nextQuery(query: string, cursor: string): string {
  const params = new URLSearchParams(query);
  params.set("cursor", cursor);
  return params.toString();
}

function add<T>(all: T[], item: T | undefined): void {
  if (item === undefined) return;
  all.push(item);
  if (all.length > MOST) all.shift();
}
