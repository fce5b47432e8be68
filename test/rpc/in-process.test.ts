import { createClient, createContextKey, createContextValues } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { ServerReflection } from "../../proto/gen/grpc/reflection/v1/reflection_pb.ts";
import { SandboxService } from "../../proto/gen/sandbox/v1/sandbox_service_pb.ts";
import { callerKey } from "../../runtime/rpc/context.ts";
import { createInProcessTransport } from "../../runtime/rpc/in-process.ts";
import { reflectionRoutes } from "../../runtime/rpc/reflection.ts";
import type { Routes } from "../../runtime/rpc/routes.ts";
import { asCaller, CALLER, createLog } from "./support.ts";

const REQUEST = { key: { key: { case: "name", value: "box" } } } as const;

function clientOf(
  routes: Routes,
  options: Partial<Parameters<typeof createInProcessTransport>[1]>,
) {
  const transport = createInProcessTransport(routes, { log: createLog(), ...options });
  return createClient(SandboxService, transport);
}

test("runs the client's interceptors outside the server's", async () => {
  const order: string[] = [];
  const client = clientOf(
    (router) =>
      router.service(SandboxService, {
        getSandbox(_, { requestHeader, responseHeader }) {
          order.push(`handler saw ${requestHeader.get("x-mark")}`);
          responseHeader.set("x-mark", "back");
          return {};
        },
      }),
    {
      interceptors: [
        (next) => async (req) => {
          req.header.set("x-mark", "there");
          const res = await next({ ...req });
          order.push(`client saw ${res.header.get("x-mark")}`);
          return res;
        },
      ],
    },
  );
  await client.getSandbox(REQUEST, asCaller());
  expect(order).toEqual(["handler saw there", "client saw back"]);
});

test("of a client's context values the caller alone crosses, and none comes back", async () => {
  const other = createContextKey("unset");
  const seen: unknown[] = [];
  const client = clientOf(
    (router) =>
      router.service(SandboxService, {
        getSandbox(_, { values }) {
          seen.push(values.get(callerKey), values.get(other));
          values.set(callerKey, undefined);
          return {};
        },
      }),
    {},
  );
  const contextValues = createContextValues().set(callerKey, CALLER).set(other, "set");
  await client.getSandbox(REQUEST, { contextValues });
  expect(seen).toEqual([CALLER, "unset"]);
  expect(contextValues.get(callerKey)).toEqual(CALLER);
});

test("frozen messages fail whoever changes them", async () => {
  const kept = { name: "kept", spec: { labels: { team: "core" } } };
  const client = clientOf(
    (router) =>
      router.service(SandboxService, {
        getSandbox: () => ({ sandbox: kept }),
        stopSandbox(request) {
          request.key = undefined;
          return {};
        },
      }),
    { freeze: true },
  );
  const { sandbox } = await client.getSandbox(REQUEST, asCaller());
  expect(() => Object.assign(sandbox?.spec?.labels ?? {}, { team: "mine" })).toThrow(TypeError);
  await expect(client.stopSandbox(REQUEST, asCaller())).rejects.toThrow("internal error");
});

test("streams both ways", async () => {
  const routes = reflectionRoutes([SandboxService], []);
  const transport = createInProcessTransport(routes, { log: createLog() });
  const client = createClient(ServerReflection, transport);
  async function* questions() {
    yield { messageRequest: { case: "listServices", value: "" } } as const;
    yield { messageRequest: { case: "fileByFilename", value: "a.proto" } } as const;
  }
  const answers: (string | undefined)[] = [];
  for await (const { messageResponse } of client.serverReflectionInfo(questions()))
    answers.push(messageResponse.case);
  expect(answers).toEqual(["listServicesResponse", "errorResponse"]);
});
