import { defineConfig } from "prisma/config";

// Only `prisma generate` and, for operators, `prisma migrate deploy` read this.
export default defineConfig({
  schema: "prisma",
  migrations: { path: "prisma/migrations" },
  datasource: { url: process.env.DATABASE_URL ?? "postgresql://localhost/sandgate" },
});
