import type { Reply } from "./call.ts";
import type { Context, Operation } from "./operations.ts";
import type { Sandbox } from "./world.ts";

const PATH = "/v1/sandboxes";
const WAIT = "wait_for=running&wait_timeout=20";
const ANY = ["created", "starting", "running", "stopping", "stopped"];

const spec = (name: string) => ({
  name,
  image: { type: "oci", reference: "alpine" },
  labels: { team: "load" },
  env: [{ key: "PURPOSE", value: "load" }],
});

export const create: Operation = (context) => make(context, PATH, "created");
export const createAndWait: Operation = (context) =>
  make(context, `${PATH}?start=true&${WAIT}`, "running");

export const readById: Operation = (context) => {
  // What is on its way first: it is known by a read that it arrived.
  const { world } = context;
  const sandbox = world.takeSandbox("stopping") ?? world.takeSandbox(...ANY);
  return sandbox && about(context, sandbox, "GET", `${PATH}/${sandbox.id}`);
};

export const readByName: Operation = (context) => {
  const sandbox = context.world.takeSandbox(...ANY);
  return sandbox && about(context, sandbox, "GET", `${PATH}/by-name/${sandbox.name}`);
};

export const start: Operation = (context) => {
  const sandbox = context.world.takeSandbox("created", "stopped");
  return (
    sandbox && about(context, sandbox, "POST", `${PATH}/${sandbox.id}/start?${WAIT}`, "running")
  );
};

export const stop: Operation = (context) => {
  const sandbox = context.world.takeSandbox("running");
  return sandbox && about(context, sandbox, "POST", `${PATH}/${sandbox.id}/stop`, "stopping");
};

export const rename: Operation = (context) => {
  const sandbox = context.world.takeSandbox(...ANY);
  const body = { name: context.world.name() };
  return sandbox && about(context, sandbox, "PATCH", `${PATH}/${sandbox.id}`, undefined, body);
};

export const destroy: Operation = ({ world, caller }) => {
  const sandbox = world.takeSandbox(...ANY);
  if (!sandbox) return undefined;
  world.sandboxes.delete(sandbox);
  return caller.call({ method: "DELETE", path: `${PATH}/${sandbox.id}` });
};

export const followLogs: Operation = ({ world, caller }) => {
  const sandbox = world.takeSandbox("running");
  if (!sandbox) return undefined;
  const path = `${PATH}/${sandbox.id}/logs?sources=all`;
  return caller.follow(path, 2_000).finally(() => {
    sandbox.busy = false;
  });
};

/** A page, or a page behind one, for as long as there are some. */
export const list: Operation = async ({ caller, world }) => {
  const filters = world.random.chance(0.5) ? "" : "&status=running";
  const first = await caller.call({ method: "GET", path: `${PATH}?limit=20${filters}` });
  const cursor: unknown = first.body?.next_cursor;
  if (first.status !== 200 || typeof cursor !== "string") return first;
  const path = `${PATH}?limit=20${filters}&cursor=${encodeURIComponent(cursor)}`;
  return caller.call({ method: "GET", path });
};

async function make({ world, caller }: Context, path: string, expected: string): Promise<Reply> {
  const reply = await caller.call({ method: "POST", path, body: spec(world.name()) });
  if (reply.status === 200) world.sandboxes.add({ ...(reply.body as Sandbox), busy: false });
  return settledAs(reply, expected);
}

async function about(
  { caller }: Context,
  sandbox: Sandbox,
  method: string,
  path: string,
  expected?: string,
  body?: object,
): Promise<Reply> {
  const reply = await caller.call({ method, path, ...(body && { body }) });
  if (reply.status === 200) {
    sandbox.status = reply.body.status;
    sandbox.name = reply.body.name;
  }
  sandbox.busy = false;
  return settledAs(reply, expected);
}

/** An answer in time whose state is another one is an error too. */
function settledAs(reply: Reply, expected: string | undefined): Reply {
  const is = reply.body?.status;
  if (reply.status !== 200 || expected === undefined || is === expected) return reply;
  return { ...reply, status: 0, reason: `${is} in place of ${expected}` };
}
