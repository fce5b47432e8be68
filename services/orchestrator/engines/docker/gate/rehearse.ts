import { networkFacts } from "../policy/facts.ts";
import { ruleset } from "../policy/ruleset.ts";
import { hasRules, setRules } from "../policy/set-rules.ts";
import { type HeldContainer, holdOne, type Rehearsal } from "./held-container.ts";
import { HostProcess } from "./held-process.ts";

/**
 * Does once, with a container that has no network, all that a start with a network policy takes.
 * @throws Error saying what does not work
 */
export async function rehearse(rehearsal: Rehearsal): Promise<void> {
  await holdOne(rehearsal, [], enforce);
}

async function enforce({ info, first, held }: HeldContainer): Promise<void> {
  const parent = await HostProcess.of(await first.parent());
  try {
    const facts = await networkFacts(info, first, parent);
    await setRules(held, ruleset({ enabled: true, policy: null, maxConnections: 1 }, facts));
    if (!(await hasRules(held))) throw new Error("nft took the rules, but they are not in force");
  } finally {
    await parent.close();
  }
}
