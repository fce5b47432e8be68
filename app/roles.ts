import { StartupError } from "../runtime/errors.ts";
import type { Metrics } from "../runtime/metrics/metrics.ts";
import { healthPaths, startAdmin } from "./admin.ts";
import { createMetrics, metricsPath } from "./metrics.ts";
import type { OneProcessOptions } from "./one-process.ts";
import { Needs } from "./readiness.ts";
import { startBillingRole } from "./roles/billing.ts";
import { startGatewayRole } from "./roles/gateway.ts";
import { startOrchestratorRole } from "./roles/orchestrator.ts";
import { startOrganizationRole } from "./roles/organization.ts";
import { startSandboxRole } from "./roles/sandbox.ts";

/** What a role needs to start; all of it is in the environment or told by the caller. */
export interface RoleOptions extends OneProcessOptions {
  /** What the role adds what it asks for to. */
  needs: Needs;
  metrics: Metrics;
}

/** Starts a role alone in this process. @returns a sentence for the operator */
type Role = (options: RoleOptions) => Promise<string>;

type Start = (options: OneProcessOptions) => Promise<string>;

/** `main.ts <name>`. */
const ROLES: Readonly<Record<string, Role>> = {
  gateway: startGatewayRole,
  sandbox: startSandboxRole,
  orchestrator: startOrchestratorRole,
  organization: startOrganizationRole,
  billing: startBillingRole,
};

/**
 * The role that the program's arguments name; undefined: all of them, in one process.
 * @throws StartupError for anything else
 */
export function readRole(args: readonly string[]): Start | undefined {
  const [name, ...rest] = args;
  if (name === undefined) return undefined;
  const role = Object.hasOwn(ROLES, name) ? ROLES[name] : undefined;
  if (role && rest.length === 0) return alone(name, role);
  const names = Object.keys(ROLES).join(", ");
  throw new StartupError(
    `There is no role "${args.join(" ")}": name one of ${names} to run it alone, or nothing to run all in one process`,
  );
}

function alone(name: string, role: Role): Start {
  return async (options) => {
    const needs = new Needs(options.lifecycle);
    const metrics = createMetrics(name);
    await startAdmin(options, [healthPaths(needs), metricsPath(metrics)]);
    return role({ ...options, needs, metrics });
  };
}
