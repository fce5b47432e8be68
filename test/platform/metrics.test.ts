import { setTimeout as sleep } from "node:timers/promises";
import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { METRICS } from "../../runtime/metrics/catalogue.ts";
import { counter, gauge } from "../../runtime/metrics/define.ts";
import { Metrics } from "../../runtime/metrics/metrics.ts";
import { toOpenMetrics } from "../../runtime/metrics/open-metrics.ts";
import { countServerCalls } from "../../runtime/metrics/rpc.ts";
import { seldomAsked } from "../../runtime/metrics/seldom-asked.ts";

const samples = async (metrics: Metrics) =>
  (await metrics.text()).split("\n").filter((line) => line !== "" && !line.startsWith("#"));

test("names follow Prometheus' conventions", () => {
  for (const { name, kind, labels } of Object.values(METRICS)) {
    expect(name).toMatch(/^sandgate_[a-z]+(_[a-z]+)*$/);
    expect(name.endsWith("_total")).toBe(kind === "counter");
    if (kind === "histogram") expect(name).toMatch(/_seconds$/);
    for (const label of labels) expect(label).not.toMatch(/org|sandbox|path|key$/);
  }
});

describe("a gauge that is read", () => {
  const METRIC = gauge("room_free", "Free.");
  const LABELED = gauge("rooms", "Rooms.", ["floor"]);

  test("shows what there is now, and nothing of before", async () => {
    const metrics = new Metrics();
    const floors = new Map([
      ["1", 3],
      ["2", 4],
    ]);
    metrics.gauge(LABELED, (put) => {
      for (const [floor, count] of floors) put(count, { floor });
    });
    expect(await samples(metrics)).toEqual(['rooms{floor="1"} 3', 'rooms{floor="2"} 4']);
    floors.delete("1");
    expect(await samples(metrics)).toEqual(['rooms{floor="2"} 4']);
  });

  test("may be told by several parts, each of its own", async () => {
    const metrics = new Metrics();
    metrics.gauge(LABELED, (put) => put(1, { floor: "1" }));
    metrics.gauge(LABELED, () => Promise.reject(new Error("gone")));
    metrics.gauge(LABELED, (put) => put(3, { floor: "3" }));
    expect(await samples(metrics)).toEqual(['rooms{floor="1"} 1', 'rooms{floor="3"} 3']);
  });

  test("is not there while nobody knows it, and spoils nothing else", async () => {
    const metrics = new Metrics();
    let known = true;
    metrics.gauge(METRIC, async (put) => {
      put(7, {});
      if (!known) throw new Error("nobody knows");
    });
    metrics.counter(counter("opened_total", "Opened.")).inc();
    expect(await samples(metrics)).toEqual(["room_free 7", "opened_total 1"]);
    known = false;
    expect(await samples(metrics)).toEqual(["opened_total 1"]);
  });
});

test("a counter that somebody else keeps is read, not added up", async () => {
  const metrics = new Metrics();
  metrics.total(counter("doors_total", "Doors."), (put) => put(5, {}));
  await metrics.text();
  expect(await samples(metrics)).toEqual(["doors_total 5"]);
});

test("two parts of a program count the same", async () => {
  const metrics = new Metrics();
  const METRIC = counter("doors_total", "Doors.", ["side"]);
  metrics.counter(METRIC).inc({ side: "left" });
  metrics.counter(METRIC).inc({ side: "left" });
  expect(await samples(metrics)).toEqual(['doors_total{side="left"} 2']);
});

test("OpenMetrics names a counter's family without its suffix, and marks the end", async () => {
  const metrics = new Metrics();
  metrics.counter(counter("doors_total", "Doors.", ["side"])).inc({ side: "a_total b" });
  metrics.gauge(gauge("free", "Free."), (put) => put(1, {}));
  expect(toOpenMetrics(await metrics.text())).toBe(
    [
      "# HELP doors Doors.",
      "# TYPE doors counter",
      'doors_total{side="a_total b"} 1',
      "# HELP free Free.",
      "# TYPE free gauge",
      "free 1",
      "# EOF",
      "",
    ].join("\n"),
  );
  // Whoever asks for the other format afterwards gets it whole.
  expect(await metrics.text()).toContain("# TYPE doors_total counter");
});

describe("what costs", () => {
  test("is asked once for all who look", async () => {
    let asked = 0;
    const look = seldomAsked(async () => {
      asked += 1;
      return asked;
    });
    expect(await Promise.all([look(), look(), look()])).toEqual([1, 1, 1]);
    expect(await look()).toBe(1);
  });

  test("is not waited for, and not there where it fails", async () => {
    const never = seldomAsked(() => new Promise(() => {}));
    expect(await never()).toBeUndefined();
    expect(await seldomAsked(() => Promise.reject(new Error("no")))()).toBeUndefined();
  });
});

describe("calls are counted by what came of them", () => {
  const method = { name: "Get", parent: { typeName: "a.v1.Service" } };
  type Next = Parameters<Interceptor>[0];
  const call = (metrics: Metrics, next: () => Promise<unknown>) =>
    countServerCalls(metrics)(next as unknown as Next)({ method } as Parameters<Next>[0]);
  const counted = async (metrics: Metrics) =>
    (await samples(metrics)).filter((line) => line.includes("calls_total"));
  const line = (code: string) =>
    `sandgate_rpc_server_calls_total{service="a.v1.Service",method="Get",code="${code}"} 1`;

  test("one answer", async () => {
    const metrics = new Metrics();
    await call(metrics, async () => ({ stream: false }));
    const late = new ConnectError("late", Code.DeadlineExceeded);
    await expect(call(metrics, () => Promise.reject(late))).rejects.toBe(late);
    expect(await counted(metrics)).toEqual([line("ok"), line("deadline_exceeded")]);
  });

  test("streams, when they end", async () => {
    const metrics = new Metrics();
    async function* messages() {
      yield 1;
      await sleep(1);
      yield 2;
    }
    const open = async () => {
      const answer = await call(metrics, async () => ({ stream: true, message: messages() }));
      return answer.message as unknown as AsyncIterable<number>;
    };
    const all = await open();
    expect(await counted(metrics)).toEqual([]);
    expect(await Array.fromAsync(all)).toEqual([1, 2]);
    for await (const _ of await open()) break;
    expect(await counted(metrics)).toEqual([line("ok"), line("canceled")]);
  });
});
