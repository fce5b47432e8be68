import { type Route, route } from "../../http/route.ts";
import { createHandler, listHandler, updateHandler } from "./handlers.ts";
import { keyHandlers } from "./key-handlers.ts";
import { keyById, keyByName } from "./keys.ts";
import { byId, byName, createSandbox, listSandboxes, updateSandbox } from "./operations.ts";
import type { SandboxDeps } from "./waiting.ts";

export function sandboxRoutes(deps: SandboxDeps): Route[] {
  const id = keyHandlers(deps, keyById);
  const name = keyHandlers(deps, keyByName);
  return [
    route("POST", "/v1/sandboxes", createSandbox, createHandler(deps)),
    route("GET", "/v1/sandboxes", listSandboxes, listHandler(deps)),
    route("GET", "/v1/sandboxes/{sandbox_id}", byId.get, id.get),
    route("PATCH", "/v1/sandboxes/{sandbox_id}", updateSandbox, updateHandler(deps)),
    route("DELETE", "/v1/sandboxes/{sandbox_id}", byId.destroy, id.destroy),
    route("POST", "/v1/sandboxes/{sandbox_id}/start", byId.start, id.start),
    route("POST", "/v1/sandboxes/{sandbox_id}/stop", byId.stop, id.stop),
    route("GET", "/v1/sandboxes/by-name/{name}", byName.get, name.get),
    route("DELETE", "/v1/sandboxes/by-name/{name}", byName.destroy, name.destroy),
    route("POST", "/v1/sandboxes/by-name/{name}/start", byName.start, name.start),
    route("POST", "/v1/sandboxes/by-name/{name}/stop", byName.stop, name.stop),
  ];
}
