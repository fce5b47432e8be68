import type { Facts } from "../facts.ts";
import type { Attempt, Journal } from "../journal.ts";

/** Whoever uses a key again is told the same, marked as such, and that is what is on record. */
export function sameAnswers({ records }: Facts, { attempts }: Journal): string[] {
  const recordOf = new Map(records.map((record) => [record.idempotencyKey, record]));
  const byKey = Map.groupBy(attempts, ({ idempotencyKey }) => idempotencyKey);
  return [...byKey].flatMap(([key, all]) => {
    if (key === undefined) return [];
    const answers = all.filter(({ body }) => body !== undefined);
    const named = (fault: string) => `${key} (${all[0]?.sandboxId}): ${fault}`;
    return [...differences(answers), ...unrecorded(answers, recordOf.get(key))].map(named);
  });
}

function differences(answers: readonly Attempt[]): string[] {
  const unmarked = answers.filter(({ replayed }) => !replayed);
  // What is waited for may change until one of those who wait has said it for all, and may be gone for the others.
  const telling = answers.filter(({ waits, outcome }) => !waits || outcome !== "doubt");
  const told = new Set(telling.map((each) => (each.waits ? idOf(each) : allOf(each))));
  return [
    ...(told.size > 1 ? [`different answers: ${[...told].join(" and ")}`] : []),
    ...unmarked
      .filter(({ repeats }) => repeats)
      .map(({ answer }) => `a repeat is not said to be one: ${answer}`),
    ...(unmarked.length > 1 ? ["two answers are said to be the first"] : []),
  ];
}

/** The sandbox that it is answered with, else how it was refused. */
function idOf({ sandboxId, outcome, answer }: Attempt): string {
  return outcome === "refused" ? answer : `sandbox ${sandboxId}`;
}

function allOf({ answer, body }: Attempt): string {
  return `${answer} ${body}`;
}

function unrecorded(
  answers: readonly Attempt[],
  record: Facts["records"][number] | undefined,
): string[] {
  const [first] = answers;
  if (!first) return [];
  if (!record) return ["nothing is on record"];
  const { outcome, sandboxId } = first;
  if (outcome === "refused")
    return record.sandboxId === null ? [] : ["refused, but on record as done"];
  // A destroy by name is answered without an id.
  if (outcome !== "acked" || (sandboxId !== undefined && sandboxId === record.sandboxId)) return [];
  if (sandboxId === undefined && record.sandboxId !== null) return [];
  return [`answered with ${sandboxId}, but ${record.sandboxId} is on record`];
}
