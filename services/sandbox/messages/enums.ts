/** A generated enum: names without their prefix to numbers. */
type Enum = Readonly<Record<string, number>>;

/** The domain's word for an enum number, such as `if_missing`; undefined for UNSPECIFIED and unknown ones. */
export interface EnumCodec<Word extends string> {
  toWord(value: number): Word | undefined;
  toNumber(word: Word): number;
}

/** Words are the generated names in lower case, so the two lists cannot drift apart unseen. */
export function enumCodec<Word extends string>(
  generated: Enum,
  words: readonly Word[],
): EnumCodec<Word> {
  const pairs = words.map((word) => {
    const value = generated[word.toUpperCase()];
    if (value === undefined) throw new Error(`enum has no ${word}`);
    return [word, value] as const;
  });
  const numbers = new Map<string, number>(pairs);
  const byNumber = new Map<number, Word>(pairs.map(([word, value]) => [value, word]));
  return {
    toWord: (value) => byNumber.get(value),
    toNumber: (word) => numbers.get(word) ?? 0,
  };
}
