import type { Facts } from "../facts.ts";
import type { Journal } from "../journal.ts";
import type { Certainty, KnownVolume } from "../volumes/book.ts";

/** Volumes are gone wholly or not at all, nothing is left of writes, and what was measured is what is there. */
export function settledVolumes({ volumes: { rows, disk } }: Facts): string[] {
  const known = new Map(rows.map((row) => [row.id, row]));
  const heldBy = new Map(disk.volumes.map(({ id, bytes }) => [id, bytes]));
  return [
    ...rows.filter(({ deleted }) => deleted).map(({ id }) => `${id} is still being deleted`),
    ...disk.volumes
      .filter(({ id }) => !known.has(id))
      .map(({ id }) => `${id} is gone, and its files are not`),
    ...disk.strays.map((path) => `${path} is in no volume`),
    ...rows
      .filter(({ id, usedBytes }) => usedBytes !== (heldBy.get(id) ?? 0))
      .map(
        ({ id, usedBytes }) =>
          `${id} holds ${heldBy.get(id) ?? 0} bytes, and ${usedBytes} were measured`,
      ),
  ];
}

/** No run goes on without its volume; what was made is there until it is deleted, once, and nothing else is. */
export function volumesMatch(facts: Facts, { book }: Journal): string[] {
  const { rows, homeless, events } = facts.volumes;
  const managed = new Map(rows.flatMap((row) => (row.name === null ? [] : [[row.name, row]])));
  const hosts = Map.groupBy(
    rows.filter(({ name }) => name === null),
    ({ orgId }) => orgId,
  );
  const wanted = new Set(book.volumes.map(({ name }) => name));
  const count = (type: string, { client, id }: KnownVolume) =>
    events.filter(
      (event) => event.type === type && event.client === client && event.volumeId === id,
    ).length;
  return [
    ...homeless,
    ...[...hosts].filter(([, all]) => all.length > 1).map(([org]) => `${org} has two host volumes`),
    ...[...managed.keys()].filter((name) => !wanted.has(name)).map((name) => `nobody made ${name}`),
    ...book.volumes.flatMap((volume) => existence(volume, managed.has(volume.name))),
    ...book.volumes
      .filter(({ id }) => id !== undefined)
      .flatMap((volume) => [
        ...times(volume, "volume_created", volume.made, count("volume_created", volume)),
        ...times(volume, "volume_deleted", volume.deleted, count("volume_deleted", volume)),
      ]),
  ];
}

function existence({ name, id, made, deleted }: KnownVolume, exists: boolean): string[] {
  const must = made === "yes" && deleted === "no";
  const may = made !== "no" && deleted !== "yes";
  if (must && !exists) return [`${id} (${name}) was made, and is gone`];
  return exists && !may ? [`${id} (${name}) was deleted, and is there`] : [];
}

function times({ id }: KnownVolume, type: string, asked: Certainty, found: number): string[] {
  const least = asked === "yes" ? 1 : 0;
  const most = asked === "no" ? 0 : 1;
  return found >= least && found <= most ? [] : [`${id} has ${found} events ${type}`];
}
