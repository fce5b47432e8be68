/** Sized to stay small at rest; nothing here weakens durability. */
export const SERVER_SETTINGS: Readonly<Record<string, string>> = {
  listen_addresses: "",
  unix_socket_permissions: "0700",
  max_connections: "60",
  shared_buffers: "64MB",
  huge_pages: "off",
  max_wal_size: "512MB",
  jit: "off",
  // Spares the processes of features that are not used.
  io_method: "sync",
  max_logical_replication_workers: "0",
  max_wal_senders: "0",
  // Refused statements are answered to their client; the log keeps what concerns the server.
  log_min_messages: "log",
  log_checkpoints: "off",
  log_timezone: "UTC",
  timezone: "UTC",
};

/** Arguments of `postgres`. */
export function toArguments(
  data: string,
  socketFolder: string,
  settings: Readonly<Record<string, string>>,
): string[] {
  // The value is a list; a quoted entry may hold commas.
  const sockets = `"${socketFolder.replaceAll('"', '""')}"`;
  const all = { ...settings, unix_socket_directories: sockets };
  return [
    "-D",
    data,
    ...Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
  ];
}
