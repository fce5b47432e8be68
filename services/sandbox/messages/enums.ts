/** Between the numbers of a generated enum and the domain's words, such as `if_missing`. */
export interface EnumCodec<Value extends number, Word extends string> {
  /** Undefined for UNSPECIFIED and for numbers that this release does not know. */
  toWord(value: number): Word | undefined;
  toNumber(word: Word): Value;
}

/** Words are the generated names in lower case, so the two lists cannot drift apart unseen. */
export function enumCodec<Value extends number, const Word extends string>(
  generated: Readonly<Record<string, Value>>,
  words: readonly Word[],
): EnumCodec<Value, Word> {
  const numberOf = (word: Word) => {
    const value = generated[word.toUpperCase()];
    if (value === undefined) throw new Error(`enum has no ${word}`);
    return value;
  };
  const numbers = new Map(words.map((word) => [word, numberOf(word)]));
  const byNumber = new Map<number, Word>(words.map((word) => [numberOf(word), word]));
  return {
    toWord: (value) => byNumber.get(value),
    toNumber: (word) => numbers.get(word) ?? numberOf(word),
  };
}
