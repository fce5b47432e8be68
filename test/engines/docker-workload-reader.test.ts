import { PassThrough } from "node:stream";
import Docker from "dockerode";
import { expect, it } from "vitest";
import { saysWorkloadEnded } from "../../services/orchestrator/engines/docker/supervisor.ts";
import { WorkloadEnds } from "../../services/orchestrator/engines/docker/workload-ends.ts";

const SENTENCE = "sandgate: the workload ended with exit code 3";
const ENDED = new Date("2026-11-21T08:00:05.123Z");
const watched = {
  isEmpty: false,
  containerId: "some",
  outputFrom: new Date("2026-11-21T07:59:59.750Z"),
  instance: {
    sandboxId: "some",
    generation: 1,
    state: "running" as const,
    startedAt: new Date("2026-11-21T08:00:00.250Z"),
    endedAt: null,
    exitCode: null,
    outOfMemory: false,
    workloadEndedAt: null,
  },
};

/** A daemon that answers each call for a container's output with the next of these streams. */
function daemonWith(streams: PassThrough[]) {
  const docker = new Docker({ socketPath: "/nonexistent" });
  const asked: object[] = [];
  const logs = async (options: object) => {
    asked.push(options);
    const stream = streams[asked.length - 1];
    if (!stream) throw new Error("the daemon is away");
    return stream;
  };
  docker.getContainer = () => Object.assign(Object.create(null), { logs });
  return { docker, asked };
}

/** One message of standard error, as the daemon frames it. */
function frame(message: string): Buffer {
  const body = Buffer.from(`${ENDED.toISOString()} ${message}`);
  const head = Buffer.alloc(8);
  head[0] = 2;
  head.writeUInt32BE(body.length, 4);
  return Buffer.concat([head, body]);
}

it("finds the sentence behind what the workload left of its line, though it comes in pieces", async () => {
  const stream = new PassThrough();
  const { docker, asked } = daemonWith([stream]);
  const ends = new WorkloadEnds(docker);
  const hints: string[] = [];
  ends.found.on("end", (sandboxId) => hints.push(sandboxId));
  expect(ends.see(watched)).toEqual(watched.instance);
  stream.write(frame("something else\n"));
  stream.write(frame(`${"x".repeat(16_000)}sandgate: the work`));
  const rest = frame("load ended with exit code 3\n");
  stream.write(rest.subarray(0, 11));
  stream.write(rest.subarray(11));
  await expect.poll(() => ends.see(watched).workloadEndedAt).toEqual(ENDED);
  expect(hints).toEqual(["some"]);
  expect(asked).toEqual([expect.objectContaining({ since: 1795247999.75, stderr: true })]);
});

it("begins again where it broke off, and stops where nobody asks any more", async () => {
  const [first, second] = [new PassThrough(), new PassThrough()];
  const { docker, asked } = daemonWith([first, second]);
  const ends = new WorkloadEnds(docker);
  ends.see(watched);
  await expect.poll(() => asked).toHaveLength(1);
  first.destroy(new Error("the daemon went away"));
  await expect
    .poll(() => {
      ends.see(watched);
      return asked;
    })
    .toHaveLength(2);
  second.write(frame(`${SENTENCE}\n`));
  await expect.poll(() => ends.see(watched).workloadEndedAt).toEqual(ENDED);
  ends.keep([]);
  expect(ends.see(watched).workloadEndedAt).toBeNull();
});

it("takes nothing else for the sentence", () => {
  expect(saysWorkloadEnded(`${SENTENCE}\n`)).toBe(true);
  for (const line of [`${SENTENCE} or so\n`, "sandgate: the workload ended with exit code x\n"])
    expect(saysWorkloadEnded(line)).toBe(false);
});
