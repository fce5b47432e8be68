/** Fixed at creation, so nothing that changes from run to run is among them. */
export const LABELS = {
  installation: "dev.sandgate.installation",
  sandbox: "dev.sandgate.sandbox",
  organization: "dev.sandgate.organization",
  /** How much is logged of it; absent: as of everything else. */
  logLevel: "dev.sandgate.log-level",
  /** `true` where somebody needs to know when the workload ended. */
  watched: "dev.sandgate.workload-watched",
  /** Before each of the sandbox's own. */
  ofSandbox: "dev.sandgate.label.",
} as const;

/**
 * Whether somebody needs to know when the workload of a container with these labels ended; `none`: its image turned
 * out to leave it nothing to run, so it is over from its start.
 */
export function watchOf(labels: Record<string, string>): "workload" | "none" | undefined {
  const label = labels[LABELS.watched];
  if (label === NO_WORKLOAD) return "none";
  return label === WORKLOAD ? "workload" : undefined;
}

/** The values of `watched`; any other: nobody does. */
export const WORKLOAD = "true";
export const NO_WORKLOAD = "none";

/**
 * What a container's name says: `sbx-<sandbox id>-<generation>`, and from the rename for a restart
 * until it has come up `…-after-<start of the run before>`. A container that still has that start time has
 * not run under this name: so a crash between rename and start is told from a run that ended.
 */
export interface MachineName {
  sandboxId: string;
  generation: number;
  /** Milliseconds since the epoch. */
  after: number | null;
}

export function formatName({ sandboxId, generation, after }: MachineName): string {
  return `sbx-${sandboxId}-${generation}${after === null ? "" : `-after-${after}`}`;
}

/** Undefined: somebody else gave it this name. */
export function parseName(name: string): MachineName | undefined {
  const groups = /^\/?sbx-(?<id>[\w-]+?)-(?<generation>\d+)(?:-after-(?<after>\d+))?$/.exec(
    name,
  )?.groups;
  if (!groups?.id) return undefined;
  return {
    sandboxId: groups.id,
    generation: Number(groups.generation),
    after: groups.after === undefined ? null : Number(groups.after),
  };
}

/** One bridge an installation. */
export function networkName(installationId: string): string {
  return `sandgate-${installationId}`;
}

/** One volume an installation, for what holds machines until their network's rules stand. */
export function gateVolumeName(installationId: string): string {
  return `sandgate-${installationId}-gate`;
}

const HOSTNAME_MAX = 63;

/**
 * A sandbox's name as a host name: lower case, letters, digits and inner hyphens. No dots: newer daemons answer for the
 * host names of a network's containers, so one sandbox could take a name of the internet away from all others.
 */
export function hostnameOf(name: string): string {
  const label = name
    .toLowerCase()
    .slice(0, HOSTNAME_MAX)
    .replace(/[^a-z0-9]+/g, "-");
  return label.replace(/^-+|-+$/g, "") || "sandbox";
}
