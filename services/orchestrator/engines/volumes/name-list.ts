const SLASH = 0x2f;
const FIRST_SIZE = 256;

/** Names of a directory, last in first out, in one piece of memory: there may be a million of them. */
export class NameList {
  #bytes = Buffer.alloc(0);
  #end = 0;

  push(name: Buffer): void {
    const end = this.#end + name.length + 1;
    if (end > this.#bytes.length) this.#grow(end);
    // Before each lies what is in none.
    this.#bytes[this.#end] = SLASH;
    name.copy(this.#bytes, this.#end + 1);
    this.#end = end;
  }

  pop(): Buffer | undefined {
    if (this.#end === 0) return undefined;
    const start = this.#bytes.subarray(0, this.#end).lastIndexOf(SLASH);
    const name = Buffer.from(this.#bytes.subarray(start + 1, this.#end));
    this.#end = start;
    return name;
  }

  #grow(least: number): void {
    const grown = Buffer.alloc(Math.max(least, FIRST_SIZE, this.#bytes.length * 2));
    this.#bytes.copy(grown, 0, 0, this.#end);
    this.#bytes = grown;
  }
}
