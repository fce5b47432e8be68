import type { FieldFault, ServiceError } from "../runtime/errors.ts";

/** The faults of a refusal, by their public paths. */
export function faultDetails({ faults }: ServiceError): { errors: FieldFault[] } {
  return { errors: faults.map(({ field, message }) => ({ field: publicPath(field), message })) };
}

export function configDetails(error: ServiceError): Record<string, unknown> {
  const { errors } = faultDetails(error);
  return { field: errors[0]?.field ?? null, errors };
}

export function firstFault(faults: readonly FieldFault[]): string | undefined {
  const [first] = faults;
  return first && `${first.field}: ${first.message}`;
}

/** The named entries of what a service sent along, and nothing else. */
export function pick(metadata: Readonly<Record<string, string>>, names: readonly string[]) {
  return Object.fromEntries(
    names.filter((name) => Object.hasOwn(metadata, name)).map((name) => [name, metadata[name]]),
  );
}

// Messages are built a little differently from the public JSON.
const RENAMED: readonly (readonly [RegExp, string])[] = [
  [/^labels\.values\b/, "labels"],
  [/^capacity\.gib$/, "capacity_gib"],
  [/^volume_id$/, "id"],
  [/^spec\./, ""],
  [/^image$/, "image.reference"],
  [/^after$/, "headers.last-event-id"],
  [/^window\./, ""],
  [/^window$/, "since"],
  [/^page_token$/, "cursor"],
  [/^page_size$/, "limit"],
  [/^statuses\b/, "status"],
  [/^key\.id$/, "sandbox_id"],
  [/^key\.name$/, "name"],
  [/^(mounts\[\d+\])\.(?:bind|named|tmpfs|disk_image)\b/, "$1"],
  [/^(patches\[\d+\])\.(?:text|file|copy_file|copy_dir|symlink|mkdir|remove|append)(?=\.|$)/, "$1"],
  [/^registry\.(?:specific|inline)\b/, "registry"],
];

function publicPath(path: string): string {
  return RENAMED.reduce((renamed, [from, to]) => renamed.replace(from, to), path);
}
