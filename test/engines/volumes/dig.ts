import { mkdirSync, writeFileSync } from "node:fs";
import { chdir } from "node:process";

/** Makes directories in each other, deeper than any path could say, with a file and an empty directory on each level. */
const [, , start = "", levels = "0"] = process.argv;
chdir(start);
for (let i = 0; i < Number(levels); i++) {
  writeFileSync("file", "12345");
  mkdirSync("a");
  mkdirSync("b");
  // In which order they are found is not known: so sometimes this one, sometimes that.
  const next = i % 3 === 0 ? "a" : "b";
  mkdirSync(`${next}/next`);
  chdir(`${next}/next`);
}
