import type { Job } from "../generator/job.ts";
import type { Stock } from "./database.ts";
import { connectTarget, grpcTarget, type Row, restTarget } from "./rows.ts";

export const CONTENDERS = ["one", "separate", "pg", "prisma", "connect", "grpc"] as const;
export type ContenderName = (typeof CONTENDERS)[number];

/** What every other one is compared with. */
export const BASELINE = "pg" satisfies ContenderName;

export const TITLES: Record<ContenderName, string> = {
  one: "Sandgate, one process",
  separate: "Sandgate, separate processes",
  pg: "Fastify + `pg`",
  prisma: "Fastify + Prisma",
  connect: "service by Connect JSON",
  grpc: "service by gRPC",
};

/** Where processors are spent. */
export const PARTS = ["gateway", "service", "others"] as const;
export type Part = (typeof PARTS)[number];

/** A program, or several, that does the work. */
export interface Contender {
  name: ContenderName;
  /** Ids of processes; one that is gateway and service at once counts as gateway. */
  parts: Partial<Record<Part, number[]>>;
  target(row: Row): Job["target"];
}

/** What runs, and where it takes requests. */
export interface Running {
  one: { pid: number; port: number };
  pg: { pid: number; port: number };
  prisma: { pid: number; port: number };
  separate: { gateway: number; service: number; others: number[]; port: number; rpcPort: number };
}

export function contendersOf(running: Running, stock: Stock): Contender[] {
  const { separate } = running;
  const alone = (name: "one" | "pg" | "prisma"): Contender => ({
    name,
    parts: { gateway: [running[name].pid] },
    target: (row) => restTarget(row, stock, running[name].port),
  });
  const roles = {
    gateway: [separate.gateway],
    service: [separate.service],
    others: separate.others,
  };
  const service = { service: roles.service };
  return [
    alone("one"),
    { name: "separate", parts: roles, target: (row) => restTarget(row, stock, separate.port) },
    alone("pg"),
    alone("prisma"),
    {
      name: "connect",
      parts: service,
      target: (row) => connectTarget(row, stock, separate.rpcPort),
    },
    { name: "grpc", parts: service, target: (row) => grpcTarget(row, stock, separate.rpcPort) },
  ];
}
