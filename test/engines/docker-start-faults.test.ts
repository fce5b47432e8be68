import { expect, test } from "vitest";
import { DockerError } from "../../services/orchestrator/engines/docker/call.ts";
import { startFault } from "../../services/orchestrator/engines/docker/start-faults.ts";
import { EngineFailure, EngineUnavailable } from "../../services/orchestrator/engines/engine.ts";

const faultOf = (message: string) => startFault(new DockerError(500, message));

test("a directory that cannot be made is the owner's to mend", () => {
  expect(faultOf("Cannot mkdir: /etc/passwd is not a directory")).toEqual(
    new EngineFailure('workdir: "/etc/passwd" is not a directory'),
  );
});

test.each([
  "database not open",
  "context canceled",
  "connection error: dial unix:///run/containerd/containerd.sock: connect: connection refused",
])("a daemon on its way out or in is worth another try: %s", (message) => {
  expect(faultOf(message)).toBeInstanceOf(EngineUnavailable);
});

test("where the disk is on the host is not said", () => {
  const { message } = faultOf("lstat /var/lib/docker/overlay2/abc/merged/etc/passwd/x: no");
  expect(message).toBe("the container could not be started: lstat /etc/passwd/x: no");
});
