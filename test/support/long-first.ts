import { BaseSequencer, type TestSpecification } from "vitest/node";

/** What takes longest, first; those that mostly wait beside those that work. */
const LONG = [
  "/flows/chaos.",
  "/flows/bounds.",
  "/engines/docker-network.",
  "/engines/docker-disk-images.",
  "/flows/commands.",
  "/flows/rolling-",
  "/flows/",
  "/engines/",
];

/** Long files begin first, so that no worker is left alone with one at the end. */
export class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}

function rank({ moduleId }: TestSpecification): number {
  const at = LONG.findIndex((part) => moduleId.includes(part));
  return at < 0 ? LONG.length : at;
}
