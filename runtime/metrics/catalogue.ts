import { counter, gauge, histogram, workHistogram } from "./define.ts";

/**
 * Every metric of our own. Label values come from small fixed sets: never an organization, a sandbox or a path as it
 * was sent.
 */
export const METRICS = {
  build: gauge("sandgate_build_info", "Always 1: which release and role this is.", [
    "version",
    "role",
  ]),

  // The gateway.
  httpRequests: counter(
    "sandgate_http_requests_total",
    "Requests answered; 499: the client hung up.",
    ["route", "method", "code"],
  ),
  httpDuration: histogram(
    "sandgate_http_request_duration_seconds",
    "From a request's headers to the end of its answer.",
    ["route", "method"],
  ),
  authRefusals: counter(
    "sandgate_auth_refusals_total",
    "Requests refused before they were looked at: wrong keys, rate limits, suspensions.",
    ["code"],
  ),
  waitsHeld: gauge("sandgate_waits_held", "Requests that wait for a sandbox."),
  waitsMax: gauge("sandgate_waits_max", "Most waits that are held at once (WAITS_MAX)."),
  logFollowers: gauge("sandgate_log_followers", "Log streams that are open."),
  transfers: gauge("sandgate_transfers", "Files of volumes on their way in or out."),
  keyCurrencyAge: gauge(
    "sandgate_key_currency_age_seconds",
    "Age of the proof that every change of an API key has been told.",
  ),

  // Calls between services.
  rpcServerCalls: counter("sandgate_rpc_server_calls_total", "Calls answered.", [
    "service",
    "method",
    "code",
  ]),
  rpcServerDuration: histogram(
    "sandgate_rpc_server_duration_seconds",
    "What calls took that were answered; streams, until they ended.",
    ["service", "method"],
  ),
  rpcClientCalls: counter("sandgate_rpc_client_calls_total", "Calls made, each try of its own.", [
    "service",
    "method",
    "code",
  ]),
  rpcClientDuration: histogram(
    "sandgate_rpc_client_duration_seconds",
    "What calls took that were made; streams, until they ended.",
    ["service", "method"],
  ),

  rpcUnderWay: gauge("sandgate_rpc_client_under_way", "Calls and streams to a service now.", [
    "service",
    "kind",
  ]),
  rpcCutOff: gauge(
    "sandgate_rpc_client_cut_off",
    "1: the service does not answer, and calls to it fail at once.",
    ["service"],
  ),
  rpcRefused: counter(
    "sandgate_rpc_client_refused_total",
    "Calls that were not made because too many were under way to that service.",
    ["service"],
  ),

  // The database, as each process uses it.
  dbConnections: gauge("sandgate_db_pool_connections", "Connections that are open.", ["state"]),
  dbSize: gauge("sandgate_db_pool_max", "Most connections that are open."),
  dbWaiting: gauge("sandgate_db_pool_waiting", "Statements that wait for a connection."),
  dbRefused: counter(
    "sandgate_db_statements_refused_total",
    "Statements that found no room to wait for a connection, or waited too long.",
  ),

  // The orchestrator.
  leading: gauge("sandgate_orchestrator_leading", "1: leads its engine; 0: stands by."),
  leaseEpoch: gauge("sandgate_orchestrator_lease_epoch", "Epoch of the lease that is held."),
  observedAt: gauge(
    "sandgate_reconcile_last_success_timestamp_seconds",
    "When rows and machines were last compared, by the leader.",
  ),
  tasks: gauge("sandgate_orchestrator_tasks", "Sandboxes that are being worked on.", ["kind"]),
  engineCalls: counter(
    "sandgate_engine_calls_total",
    "Calls of the engine, by what came of them.",
    ["verb", "outcome"],
  ),
  engineDuration: workHistogram(
    "sandgate_engine_call_duration_seconds",
    "What engine calls took.",
    ["verb"],
  ),
  // Of all, told by the leader alone.
  sandboxes: gauge("sandgate_sandboxes", "Sandboxes that exist.", ["state"]),
  queueDepth: gauge("sandgate_queue_depth", "Starts that no engine has yet.", ["state"]),
  queueOldest: gauge("sandgate_queue_oldest_seconds", "Age of the oldest start in the queue."),
  volumesOldest: gauge(
    "sandgate_volumes_oldest_measurement_seconds",
    "Since when the volume that was measured longest ago was not measured.",
  ),

  // Billing.
  meteringLag: gauge(
    "sandgate_metering_lag_seconds",
    "Age of the oldest run that has ended and is not rolled up.",
  ),
} as const;
