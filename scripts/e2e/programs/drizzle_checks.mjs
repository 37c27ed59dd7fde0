// Drizzle over node-postgres: queries of its builder, transactions, migrations; drizzle-kit's push and introspection.

import { execFile } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { and, asc, count, desc, eq, exists, gt, ilike, inArray, sql, sum } from "drizzle-orm";
import { drizzle } from "drizzle-orm/node-postgres";
import { migrate } from "drizzle-orm/node-postgres/migrator";
import { boolean, date, integer, numeric, pgTable, serial, text, timestamp, uuid, varchar } from "drizzle-orm/pg-core";
import pg from "pg";
import { address, keep, refused, serve, url } from "./harness.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const makers = pgTable("makers", { id: serial("id").primaryKey(), name: text("name").notNull() });
const items = pgTable("items", {
  id: serial("id").primaryKey(), name: varchar("name", { length: 40 }).notNull().unique(), price: numeric("price", { precision: 10, scale: 2 }), open: boolean("open").default(true),
  made: date("made"), maker: integer("maker"), tags: text("tags").array(), code: uuid("code"), at: timestamp("at", { withTimezone: true }),
});
const TABLES = `create table makers (id serial primary key, name text not null);
  create table items (id serial primary key, name varchar(40) not null unique, price numeric(10,2), open boolean default true, made date, maker int, tags text[], code uuid, at timestamptz)`;

async function shop() {
  const pool = new pg.Pool({ ...address, max: 3 });
  keep(() => pool.end());
  const db = drizzle(pool);
  await db.execute(sql.raw(TABLES));
  await db.insert(makers).values([{ name: "Acme" }, { name: "Bolt" }]);
  await db.insert(items).values([...Array(6).keys()].map((n) => ({ name: `item ${n}`, price: String(n / 2), maker: (n % 2) + 1, tags: ["a", `t${n}`], made: "2024-02-29", at: new Date(0) })));
  return db;
}

function kit(words, source) {
  const place = fs.mkdtempSync(path.join(os.tmpdir(), "drizzle-"));
  keep(() => fs.rmSync(place, { recursive: true }));
  fs.symlinkSync(path.join(here, "node_modules"), path.join(place, "node_modules"));
  fs.writeFileSync(path.join(place, "schema.js"), source);
  fs.writeFileSync(path.join(place, "drizzle.config.json"), JSON.stringify({ dialect: "postgresql", schema: "./schema.js", out: "./out", dbCredentials: { url } }));
  return new Promise((resolve) => {
    execFile(process.execPath, [path.join(here, "node_modules", "drizzle-kit", "bin.cjs"), ...words], { cwd: place, env: { ...process.env, NO_COLOR: "1" } }, (error, out, err) => resolve({ place, out, err, code: error?.code ?? 0 }));
  });
}

const SCHEMA = `import { pgTable, serial, text, integer, index } from "drizzle-orm/pg-core";
export const things = pgTable("things", { id: serial("id").primaryKey(), name: text("name").notNull(), size: integer("size").default(3) }, (table) => [index("things_name").on(table.name)]);`;

const columns = (db) => db.execute(sql`select column_name, data_type, column_default, is_nullable from information_schema.columns where table_name = 'things' order by ordinal_position`).then((found) => found.rows);

await serve({
  async "selects"(see) {
    const db = await shop();
    see(await db.select().from(items).where(and(gt(items.price, "1"), ilike(items.name, "ITEM%"), inArray(items.id, [3, 4, 9]))).orderBy(desc(items.price)));
    see(await db.select({ maker: makers.name, n: count(), worth: sum(items.price) }).from(items).leftJoin(makers, eq(makers.id, items.maker)).groupBy(makers.name).having(gt(count(), 1)).orderBy(asc(makers.name)));
    see(await db.select({ name: makers.name }).from(makers).where(exists(db.select().from(items).where(and(eq(items.maker, makers.id), gt(items.price, "2"))))), await db.$count(items));
  },
  async "subqueries and with"(see) {
    const db = await shop();
    const top = db.$with("top").as(db.select().from(items).orderBy(desc(items.price)).limit(2));
    see(await db.with(top).select({ name: top.name }).from(top).orderBy(asc(top.name)));
    const each = db.select({ maker: items.maker, most: sql`max(${items.price})`.as("most") }).from(items).groupBy(items.maker).as("each");
    see(await db.select({ name: makers.name, most: each.most }).from(makers).innerJoin(each, eq(each.maker, makers.id)).orderBy(makers.id), await db.selectDistinctOn([items.maker], { name: items.name }).from(items).orderBy(items.maker, desc(items.price)));
  },
  async "insert, update and delete"(see) {
    const db = await shop();
    see(await db.insert(items).values({ name: "new", tags: ["x"] }).returning(), await db.update(items).set({ price: sql`${items.price} + 1` }).where(eq(items.id, 1)).returning({ price: items.price }), (await db.delete(items).where(eq(items.maker, 2))).rowCount);
  },
  async "upsert"(see) {
    const db = await shop();
    see(await db.insert(items).values({ name: "item 1", price: "9" }).onConflictDoUpdate({ target: items.name, set: { price: sql`excluded.price` } }).returning({ id: items.id, price: items.price }), await db.insert(items).values({ name: "item 1" }).onConflictDoNothing().returning());
  },
  async "transactions"(see) {
    const db = await shop();
    await refused(see, () => db.transaction(async (transaction) => { await transaction.delete(items); await transaction.insert(items).values({ name: null }); }, { isolationLevel: "repeatable read" }));
    see(await db.$count(items));
  },
  async "nested transactions"(see) {
    const db = await shop();
    await db.transaction(async (outer) => {
      await refused(see, () => outer.transaction((inner) => inner.insert(items).values({ name: "item 1" })));
      await outer.delete(items);
    });
    see(await db.$count(items));
  },
  async "prepared queries"(see) {
    const db = await shop();
    const query = db.select({ name: items.name }).from(items).where(eq(items.id, sql.placeholder("id"))).prepare("by_id");
    see(await query.execute({ id: 2 }), await query.execute({ id: 99 }));
  },
  async "locks"(see) {
    const db = await shop();
    see(await db.transaction((transaction) => transaction.select({ id: items.id }).from(items).where(gt(items.id, 4)).orderBy(items.id).for("update", { skipLocked: true })));
  },
  async "migrations"(see) {
    const db = await shop();
    const place = fs.mkdtempSync(path.join(os.tmpdir(), "drizzle-"));
    keep(() => fs.rmSync(place, { recursive: true }));
    fs.mkdirSync(path.join(place, "meta"));
    fs.writeFileSync(path.join(place, "0000_first.sql"), 'create table "things" ("id" serial primary key);\n--> statement-breakpoint\nalter table "things" add column "name" text default \'x\';');
    fs.writeFileSync(path.join(place, "meta", "_journal.json"), JSON.stringify({ version: "7", dialect: "postgresql", entries: [{ idx: 0, version: "7", when: 1700000000000, tag: "0000_first", breakpoints: true }] }));
    await migrate(db, { migrationsFolder: place });
    await migrate(db, { migrationsFolder: place });
    see(await columns(db));
  },
  async "kit's push"(see) {
    const db = await shop();
    const { out, err, code } = await kit(["push", "--force"], SCHEMA);
    see(code, err.split("\n").filter((line) => /error/i.test(line)), out.includes("Changes applied"), await columns(db));
  },
  async "kit's introspection"(see) {
    await shop();
    const { place, code, err } = await kit(["introspect"], "");
    see(code, err.split("\n").filter((line) => /error/i.test(line)), fs.existsSync(path.join(place, "out", "schema.ts")) ? fs.readFileSync(path.join(place, "out", "schema.ts"), "utf8") : "none");
  },
});
