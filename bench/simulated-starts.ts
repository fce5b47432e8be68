// Many starts at once on the simulated engine: from the first request until all of them run, beside as many
// plain creates, which are the same without the orchestrator's part.
// npm run bench:starts [-- how many]
import { summary, timed } from "./support/measure.ts";
import { startBenchProgram } from "./support/program.ts";

const COUNT = Number(process.argv[2] ?? 1_000);
const ROUNDS = 3;
const body = {
  image: { type: "oci", reference: "alpine" },
  resources: { vcpus: 1, memory_mib: 64 },
};

const program = await startBenchProgram({ ENGINE: "simulated" });
const all = (query: string) =>
  Promise.all(Array.from({ length: COUNT }, () => program.post(`/v1/sandboxes${query}`, body)));

await all("");
const creates: number[] = [];
const starts: number[] = [];
for (let round = 0; round < ROUNDS; round += 1) {
  creates.push(await timed(() => all("")));
  starts.push(
    await timed(async () => {
      const made = await all("?start=true&wait_for=running&wait_timeout=300");
      const others = made.filter(({ status }) => status !== "running");
      if (others.length > 0) throw new Error(`${others.length} do not run`);
    }),
  );
}
console.log(`${COUNT} at once, ${ROUNDS} rounds, ENGINE=simulated`);
console.log(summary("created", creates, "ms"));
console.log(summary("created, and all running", starts, "ms"));
await program.stop();
