// The orchestrator role with the engine of an engine host: orchestrator.ts <socket>
import { Needs } from "../../../app/readiness.ts";
import { startOrchestratorRole } from "../../../app/roles/orchestrator.ts";
import { readConfig } from "../../../runtime/env.ts";
import { Lifecycle, onSignals } from "../../../runtime/lifecycle.ts";
import { createLogger } from "../../../runtime/log.ts";
import { Metrics } from "../../../runtime/metrics/metrics.ts";
import { createDirectoryVolumes } from "../../../services/orchestrator/engines/volumes/directory-volumes.ts";
import { createRemoteEngine } from "./remote-engine.ts";

const [socket = ""] = process.argv.slice(2);
const config = readConfig(process.env);
const log = createLogger(config.log, "orchestrator");
const lifecycle = new Lifecycle(log);
const end = async (code: number, delaySecs = 0) => {
  await lifecycle.stop(config.drain.timeoutSecs * 1_000, delaySecs * 1_000);
  process.exit(code);
};
onSignals(
  () => void end(0, config.drain.delaySecs),
  () => lifecycle.force(),
);
const needs = new Needs(lifecycle);
const metrics = new Metrics();
const onCrash = () => void end(1);
const engine = {
  ...createRemoteEngine(socket),
  volumes: createDirectoryVolumes({ root: config.engine.volumesDir }),
};
try {
  await startOrchestratorRole({ config, log, lifecycle, onCrash, needs, metrics }, async () => ({
    engine,
    why: "an engine host of its own",
    network: undefined,
  }));
} catch (error) {
  log.error({ err: error }, "could not start");
  await end(1);
}
