// A monolith as a contender of `npm run bench`: node bench/contenders/main.ts pg|prisma
import { createSecrets } from "../../runtime/secrets.ts";
import { createMonolith } from "./monolith.ts";
import { PgStore } from "./pg-store.ts";
import { PrismaStore } from "./prisma-store.ts";

const POOL = 10;
const { DATABASE_URL = "", PORT = "0", SECRETS_KEY = "" } = process.env;
const store =
  process.argv[2] === "prisma"
    ? new PrismaStore(DATABASE_URL, POOL)
    : new PgStore(DATABASE_URL, POOL);
const secrets = createSecrets(Buffer.from(SECRETS_KEY, "hex"));
const app = createMonolith(store, (data) => secrets.hmac("cursor", data));
await app.listen({ host: "127.0.0.1", port: Number(PORT) });
