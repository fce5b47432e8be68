// From `POST /v1/sandboxes?start=true&wait_for=running` to its answer, beside creating and starting the same
// container through the Docker API directly; image present, one after the other, in turns.
// npm run bench:docker [-- rounds]   (DOCKER_HOST says where; busybox-static makes the image)
import { setTimeout as sleep } from "node:timers/promises";
import {
  connectDocker,
  defaultDockerHost,
} from "../services/orchestrator/engines/docker/connect.ts";
import { IMAGES, loadImage } from "../test/support/images.ts";
import { median, summary, timed } from "./support/measure.ts";
import { startBenchProgram } from "./support/program.ts";

const ROUNDS = Number(process.argv[2] ?? 30);
const WARM_UP = 10;
const MIB = 1024 * 1024;
const PATH = "/v1/sandboxes?start=true&wait_for=running";

const host = process.env.DOCKER_HOST || defaultDockerHost();
const docker = connectDocker({ host });
await loadImage(docker, IMAGES.busybox);
const program = await startBenchProgram({ ENGINE: "docker", DOCKER_HOST: host });

const body = (network: boolean) => ({
  image: { type: "oci", reference: IMAGES.busybox.name },
  resources: { vcpus: 1, memory_mib: 64 },
  network: { enabled: network },
});

async function destroy(id: string): Promise<void> {
  const { authorization = "" } = program.headers;
  const request = { method: "DELETE", headers: { authorization } };
  await fetch(`${program.url}/v1/sandboxes/${id}`, request);
}

/** The bridge that the program made for its own sandboxes, so that both join the same. */
async function bridge(): Promise<string> {
  await program.post(PATH, body(true));
  const [found] = await docker.listNetworks({ filters: { label: ["dev.sandgate.installation"] } });
  if (!found) throw new Error("the program has no bridge");
  return found.Name;
}

async function direct(NetworkMode: string): Promise<string> {
  const container = await docker.createContainer({
    Image: IMAGES.busybox.name,
    Hostname: "brave-otter-42",
    Cmd: ["sleep", "1000000"],
    HostConfig: {
      NetworkMode,
      NanoCpus: 1e9,
      Memory: 64 * MIB,
      MemorySwap: 64 * MIB,
      PidsLimit: 4096,
      CapDrop: ["NET_RAW"],
      Init: true,
      LogConfig: { Type: "json-file", Config: { "max-size": "10m", "max-file": "3" } },
    },
  });
  await container.start();
  return container.id;
}

async function compare(name: string, network: string): Promise<void> {
  const [ours, theirs]: [number[], number[]] = [[], []];
  for (let round = -WARM_UP; round < ROUNDS; round += 1) {
    const made = { id: "", container: "" };
    const viaApi = await timed(async () => {
      made.id = (await program.post(PATH, body(network !== "none"))).id;
    });
    const viaDocker = await timed(async () => {
      made.container = await direct(network);
    });
    await destroy(made.id);
    await docker.getContainer(made.container).remove({ force: true });
    if (round < 0) continue;
    ours.push(viaApi);
    theirs.push(viaDocker);
  }
  console.log(name);
  console.log(summary("  POST to running", ours, "ms"));
  console.log(summary("  docker create + start", theirs, "ms"));
  console.log(`  ratio of medians             ${(median(ours) / median(theirs)).toFixed(2)}`);
}

console.log(`${ROUNDS} rounds, image present, ${host}`);
await compare("without a network", "none");
const network = await bridge();
await compare("with a network", network);

const listed = await fetch(`${program.url}/v1/sandboxes?limit=100`, { headers: program.headers });
// The shape of a page, by the contract.
const { data } = (await listed.json()) as { data: { id: string }[] };
for (const { id } of data) await destroy(id);
const filters = { label: ["dev.sandgate.sandbox"], network: [network] };
while ((await docker.listContainers({ all: true, filters })).length > 0) await sleep(100);
await program.stop();
await docker.getNetwork(network).remove();
