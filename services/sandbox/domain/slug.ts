import { randomInt } from "node:crypto";
import { adjectives, animals } from "unique-names-generator";

// Words that nobody wants to read in an address.
const UNFIT = new Set(["dead", "fat", "fatal", "gay", "naked", "sexual", "stupid", "ugly"]);
const ADJECTIVES = adjectives.filter(fits);
const ANIMALS = animals.filter(fits);

function fits(word: string): boolean {
  return /^[a-z]+$/.test(word) && !UNFIT.has(word);
}

/** A slug such as `brave-otter-42`, one of tens of millions. */
export function generateSlug(): string {
  return `${pick(ADJECTIVES)}-${pick(ANIMALS)}-${randomInt(10, 1000)}`;
}

function pick(words: readonly string[]): string {
  const word = words[randomInt(words.length)];
  if (word === undefined) throw new Error("the word list is empty");
  return word;
}
