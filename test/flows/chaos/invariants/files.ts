import type { Facts } from "../facts.ts";
import type { Journal } from "../journal.ts";
import { type KnownVolume, NOTHING } from "../volumes/book.ts";

/** What was put and acknowledged is there with exactly its content, what was not wholly or not at all; nothing else is. */
export function filesMatch({ volumes: { rows, disk } }: Facts, { book }: Journal): string[] {
  const living = new Set(rows.filter(({ deleted }) => !deleted).map(({ id }) => id));
  const filesOf = new Map(disk.volumes.map(({ id, files }) => [id, files]));
  const known = new Set(book.volumes.map(({ id }) => id));
  return [
    ...book.volumes.flatMap((volume) =>
      volume.id !== undefined && living.has(volume.id)
        ? differences(volume, filesOf.get(volume.id) ?? {})
        : [],
    ),
    ...disk.volumes
      .filter(({ id, files }) => !known.has(id) && Object.keys(files).length > 0)
      .map(({ id }) => `${id} has files that nobody put there`),
  ];
}

function differences({ id, files }: KnownVolume, found: Record<string, string>): string[] {
  return [...new Set([...files.keys(), ...Object.keys(found)])].flatMap((path) => {
    const may = files.get(path)?.may ?? new Set([NOTHING]);
    const there = found[path] ?? NOTHING;
    return may.has(there) ? [] : [`${id}: ${path} is ${there}, not ${[...may].join(" or ")}`];
  });
}
