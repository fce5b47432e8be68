/**
 * The values of a stream of JSON lines, as the daemon sends events and progress. It ends as the
 * stream does, and throws what the stream throws.
 */
export async function* jsonLines(stream: NodeJS.ReadableStream): AsyncGenerator<unknown> {
  let rest = "";
  stream.setEncoding("utf8");
  for await (const chunk of stream) {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) if (line.trim() !== "") yield JSON.parse(line);
  }
  if (rest.trim() !== "") yield JSON.parse(rest);
}
