import { afterAll, beforeAll, expect, test } from "vitest";
import { image, type Program } from "../support/program.ts";
import { inBothShapes } from "../support/shapes.ts";

inBothShapes("waits", (startProgram) => {
  let program: Program;

  beforeAll(async () => {
    program = await startProgram({ WAITS_MAX: "1000" });
  });
  afterAll(() => program.close());

  test("create, wait until it runs, stop, start again and wait, destroy", async () => {
    const { api } = program;
    const created = await api("POST", "/v1/sandboxes?start=true&wait_for=running&wait_timeout=90", {
      ...image(),
      name: "life",
    });
    expect(created.body).toMatchObject({
      status: "running",
      status_reason: null,
      stopped_at: null,
    });
    expect((await api("POST", "/v1/sandboxes/by-name/life/stop", {})).body.status).toBe("stopping");
    const status = async () => (await api("GET", "/v1/sandboxes/by-name/life")).body.status;
    await expect.poll(status).toBe("stopped");
    const again = await api("POST", "/v1/sandboxes/by-name/life/start?wait_for=running", {});
    expect(again.body).toMatchObject({ status: "running", id: created.body.id, stopped_at: null });
    expect(await api("DELETE", `/v1/sandboxes/${created.body.id}`)).toMatchObject({ status: 200 });
    expect(await api("GET", `/v1/sandboxes/${created.body.id}`)).toMatchObject({ status: 404 });
  });

  // A busy machine may say that it has too much to do; the same request again is the same sandbox.
  async function persistently(name: string) {
    const create = () =>
      program.api(
        "POST",
        "/v1/sandboxes?start=true&wait_for=running",
        { ...image(), name },
        { headers: { "idempotency-key": name } },
      );
    let answer = await create();
    while ([503, 504].includes(answer.status)) answer = await create();
    return answer;
  }

  test("1,000 at once: each is answered with its own sandbox, running", async () => {
    const answers = await Promise.all(
      Array.from({ length: 1_000 }, (_, i) => persistently(`many-${i}`)),
    );
    expect(answers.map(({ status, body }) => `${status} ${body.status} ${body.name}`)).toEqual(
      answers.map((_, i) => `200 running many-${i}`),
    );
    expect(new Set(answers.map(({ body }) => body.id)).size).toBe(1_000);
  }, 120_000);

  test("a start that is already running is refused, with its state", async () => {
    const refused = await program.api(
      "POST",
      "/v1/sandboxes/by-name/many-1/start?wait_for=running",
    );
    expect(refused).toMatchObject({
      status: 409,
      body: {
        error: { code: "invalid_state_transition", details: { from: "running", action: "start" } },
      },
    });
  });
});
