import fc from "fast-check";
import { type Kind, Ref } from "./ref.ts";

// What the API asks of a value and its schema cannot say, each rule once. All else comes from the schema.

/** Text that UTF-8 and PostgreSQL can carry: no NUL, no lone surrogate. */
export const text = (maxLength = 24, minLength = 0) =>
  fc.string({ unit: "binary", minLength, maxLength }).filter((value) => !value.includes("\0"));

const word = fc.stringMatching(/^[a-z][a-z0-9]{0,7}$/);
const part = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom("a", "b", "c", "data", "etc") },
  text(8, 1)
    .map((value) => value.replaceAll("/", "-"))
    .filter((value) => value !== "." && value !== ".."),
);
const parts = (minLength: number) => fc.array(part, { minLength, maxLength: 4 });
const machinePath = parts(1)
  .map((all) => `/${all.join("/")}`)
  .filter((path) => path.split("/").some((each) => each !== "" && each !== "."));
const mountPoint = machinePath.map((path) => path.replaceAll(/[:;,]/g, "-"));
const volumePath = parts(1).map((all) => all.join("/"));
const domain = fc.array(word, { minLength: 1, maxLength: 3 }).map((all) => all.join("."));
const reference = fc
  .tuple(
    fc.option(domain),
    word,
    fc.option(fc.stringMatching(/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,20}$/)),
  )
  .map(([host, name, tag]) => `${host ? `${host}.io/` : ""}${name}${tag ? `:${tag}` : ""}`);
const octet = fc.nat({ max: 255 });
const cidr = fc.oneof(
  fc.tuple(octet, octet, fc.nat({ max: 32 })).map(([a, b, bits]) => `${a}.${b}.0.0/${bits}`),
  fc.ipV4(),
  fc.nat({ max: 128 }).map((bits) => `2001:db8::/${bits}`),
);
const variable = text(16, 1).filter((key) => !key.includes("=") && !key.startsWith("MSB_"));
const variableName = text(16, 1).filter((key) => !key.includes("="));
const labelKey = text(20, 1).filter(
  (key) => !/^(sandbox|microsandbox|service)\./.test(key) && key !== "__proto__",
);
const fileName = part.filter((name) => name !== "__proto__");
const reals = (kind: Kind) => fc.nat({ max: 1000 }).map((pick) => new Ref(kind, pick));
const encodedPath = fc.oneof(
  { weight: 3, arbitrary: fc.nat({ max: 1000 }).map((pick) => new Ref("file", pick)) },
  volumePath.map((path) => Buffer.from(path).toString("base64url")),
);

/**
 * Values of strings by place: `Component.property`, `Component.property[]` for the items of an array, `Component.property{}` for the
 * keys of a map; parameters by `header.Name` and the like.
 */
export const TEXTS: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  "Image.reference": reference,
  "CreateSandboxRequest.reference": reference,
  "CreateSandboxRequest.labels{}": labelKey,
  "CreateVolumeRequest.labels{}": labelKey,
  "UpdateVolumeRequest.labels{}": labelKey,
  "query.labels{}": labelKey,
  "EnvVarInput.key": variable,
  "RuntimeInput.workdir": machinePath,
  "RuntimeInput.scripts{}": fileName,
  "InitInput.cmd": fc.oneof(fc.constant("auto"), machinePath),
  "InitInput.env[0]": variable,
  "BindMountInput.host": volumePath,
  "BindMountInput.guest": mountPoint,
  "NamedMountInput.name": reals("volumeName"),
  "NamedMountInput.guest": mountPoint,
  "TmpfsMountInput.guest": mountPoint,
  "DiskImageMountInput.host": volumePath,
  "DiskImageMountInput.guest": mountPoint,
  "TextPatch.path": machinePath,
  "FilePatch.path": machinePath,
  "CopyFilePatch.src": volumePath,
  "CopyFilePatch.dst": machinePath,
  "CopyDirPatch.src": volumePath,
  "CopyDirPatch.dst": machinePath,
  "SymlinkPatch.link": machinePath,
  "MkdirPatch.path": machinePath,
  "RemovePatch.path": machinePath,
  "AppendPatch.path": machinePath,
  "Destination.cidr": cidr,
  "Destination.domain": domain,
  "Destination.domain_suffix": domain,
  "ExactHost.value": fc.oneof(domain, fc.ipV4()),
  "WildcardHost.value": domain.map((name) => `*.${name}`),
  "SecretInput.env_var": variable,
  "EnvSecretSource.var": variableName,
  "MakeDirectoryRequest.path": volumePath,
  "MoveRequest.from": fc.oneof({ weight: 4, arbitrary: reals("path") }, volumePath),
  "MoveRequest.to": volumePath,
  "query.sources": fc
    .subarray(["stdout", "stderr", "output", "system", "all"], { minLength: 1 })
    .map((all) => all.join(",")),
  "query.wait_timeout": fc.nat({ max: 2 }),
  // Taken from an answer, see Pages in pool.ts.
  "query.cursor": fc.constant(undefined),
  "header.x-msb-file-path": encodedPath,
  "header.Last-Event-ID": fc.nat({ max: 500 }).map(eventId),
};

/** The form that ids of log events have: a count byte, then pairs of generation and offset. */
function eventId(offset: number): string {
  const bytes = Buffer.alloc(17);
  bytes.writeUInt8(1);
  bytes.writeBigUInt64LE(1n, 1);
  bytes.writeBigUInt64LE(BigInt(offset), 9);
  return bytes.toString("base64");
}

type Fields = Record<string, unknown>;

/** Rules between the fields of one object: changes a value whose fields fit, so that they fit together. */
export const TOGETHER: Readonly<Record<string, (value: Fields) => Fields>> = {
  RlimitInput: (value) => ordered(value, "soft", "hard"),
  PortRange: (value) => ordered(value, "start", "end"),
  CreateSandboxRequest: withOneImage,
  BindMountInput: withoutMirror,
  NamedMountInput: withoutMirror,
};

function ordered(value: Fields, low: string, high: string): Fields {
  const [least, most] = [Number(value[low]), Number(value[high])];
  return { ...value, [low]: Math.min(least, most), [high]: Math.max(least, most) };
}

/** `image`, or the two fields of older clients; mount points are unique. */
function withOneImage({ image, source, reference: older, ...rest }: Fields): Fields {
  const isOlder = image === undefined && typeof older === "string";
  const named = isOlder
    ? { source: source ?? "oci", reference: older }
    : { image: image ?? { type: "oci", reference: "alpine" } };
  const mounts = Array.isArray(rest.mounts) ? { mounts: unique(rest.mounts) } : {};
  return { ...rest, ...named, ...mounts };
}

function unique(mounts: Fields[]): Fields[] {
  return mounts.map((mount, i) => ({ ...mount, guest: `/mnt${i}${mount.guest}` }));
}

function withoutMirror(value: Fields): Fields {
  const clashes = value.stat_virtualization === "off" && value.host_permissions === "mirror";
  return clashes ? { ...value, host_permissions: "private" } : value;
}

const DAY_MS = 86_400_000;

/** The same of a query, by operation. */
export function togetherInQuery(id: string, query: Fields): Fields {
  const { start, wait_for, wait_timeout, since, until, ...rest } = query;
  const begins = id !== "createSandbox" || start === true;
  return {
    ...rest,
    ...(start === undefined ? {} : { start }),
    ...(wait_for !== undefined && begins ? { wait_for, wait_timeout: wait_timeout ?? 1 } : {}),
    ...(since === undefined || until === undefined
      ? {}
      : windowOf(id, String(since), String(until))),
  };
}

/** Usage is asked for at most 92 days, and not from later than now on. */
function windowOf(id: string, since: string, until: string): Fields {
  const [first = 0, last = 0] = [Date.parse(since), Date.parse(until)].sort((a, b) => a - b);
  const most = id === "listEvents" ? Number.POSITIVE_INFINITY : first + 90 * DAY_MS;
  const time = (ms: number) => new Date(ms).toISOString();
  return { since: time(first), until: time(Math.min(last, most)) };
}

/** Faults of a request that fits by form: what it names is gone by now. */
export const OF_STATE = [
  /^mounts\[\d+\]\.name$/,
  /^registry\.credential_id$/,
  // A log event of another sandbox, or of none.
  /^headers\.last-event-id$/,
];
