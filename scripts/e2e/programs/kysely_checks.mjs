// Kysely: a typed query builder, its schema builder, its introspection and its migrator; node-pg-migrate's migrations.

import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { Kysely, PostgresDialect, sql } from "kysely";
import { Migrator } from "kysely/migration";
import { runner } from "node-pg-migrate";
import pg from "pg";
import Cursor from "pg-cursor";
import { address, keep, refused, serve, url } from "./harness.mjs";

function connect() {
  const db = new Kysely({ dialect: new PostgresDialect({ pool: new pg.Pool({ ...address, max: 3 }), cursor: Cursor }) });
  keep(() => db.destroy());
  return db;
}

async function people() {
  const db = connect();
  await db.schema.createTable("people").addColumn("id", "serial", (column) => column.primaryKey()).addColumn("name", "varchar(40)", (column) => column.notNull().unique()).addColumn("height", "numeric").ifNotExists().execute();
  await db.insertInto("people").values([...Array(6).keys()].map((n) => ({ name: `name ${n}`, height: n / 4 }))).execute();
  return db;
}

const columns = async (db) => (await sql`select table_name, column_name, data_type, column_default, is_nullable from information_schema.columns where table_schema = 'public' and table_name not like '%migration%' order by 1, ordinal_position`.execute(db)).rows;

await serve({
  async "queries"(see) {
    const db = await people();
    see(await db.selectFrom("people").select(["id", (build) => build.fn.coalesce("height", sql`0`).as("h")]).where("height", ">", 0.3).orderBy("id").limit(2).execute(), await db.selectFrom("people").select((build) => [build.fn.countAll().as("n"), build.fn.avg("height").as("mean")]).executeTakeFirst());
    see(await db.with("tall", (build) => build.selectFrom("people").selectAll().where("height", ">", 1)).selectFrom("tall").select("name").orderBy("name").execute());
  },
  async "changes"(see) {
    const db = await people();
    see(await db.updateTable("people").set({ height: 2 }).where("id", "=", 1).returning(["id", "height"]).execute(), (await db.deleteFrom("people").where("height", "<", 1).executeTakeFirst()).numDeletedRows);
    see(await db.insertInto("people").values({ name: "name 5", height: 9 }).onConflict((on) => on.column("name").doUpdateSet({ height: (build) => build.ref("excluded.height") })).returning("height").execute());
  },
  async "merge"(see) {
    const db = await people();
    see((await db.mergeInto("people as p").using(sql`(values (1, 'one'), (50, 'fifty'))`.as(sql`v(id, name)`), (on) => on.onRef("p.id", "=", "v.id")).whenMatched().thenUpdateSet({ name: sql`v.name` }).whenNotMatched().thenInsertValues({ id: sql`v.id`, name: sql`v.name` }).executeTakeFirst()).numChangedRows, await db.selectFrom("people").select("name").where("id", "in", [1, 50]).orderBy("id").execute());
  },
  async "transactions"(see) {
    const db = await people();
    await refused(see, () => db.transaction().setIsolationLevel("repeatable read").execute(async (transaction) => { await transaction.deleteFrom("people").execute(); await sql`select 1 / 0`.execute(transaction); }));
    see((await db.selectFrom("people").select("id").execute()).length);
  },
  async "controlled transaction with savepoints"(see) {
    const db = await people();
    const transaction = await db.startTransaction().execute();
    const inner = await transaction.savepoint("s").execute();
    await inner.deleteFrom("people").execute();
    await inner.rollbackToSavepoint("s").execute();
    await transaction.commit().execute();
    see((await db.selectFrom("people").select("id").execute()).length);
  },
  async "stream"(see) {
    const db = await people();
    const found = [];
    for await (const row of db.selectFrom("people").select("id").orderBy("id").stream(2)) found.push(row.id);
    see(found);
  },
  async "introspection"(see) {
    const db = await people();
    for (const table of await db.introspection.getTables()) see(table.name, table.isView, table.schema, table.columns.map((column) => [column.name, column.dataType, column.isNullable, column.isAutoIncrementing, column.hasDefaultValue]));
    see((await db.introspection.getSchemas()).map((schema) => schema.name).filter((name) => !name.startsWith("pg_t")).sort());
  },
  async "changes of a table"(see) {
    const db = await people();
    await db.schema.alterTable("people").addColumn("note", "text", (column) => column.defaultTo("x")).execute();
    await db.schema.alterTable("people").alterColumn("height", (column) => column.setDataType("double precision")).alterColumn("note", (column) => column.setNotNull()).execute();
    await db.schema.createIndex("people_note").on("people").columns(["note", "height"]).unique().execute();
    await db.schema.createView("notes").orReplace().as(db.selectFrom("people").select("note")).execute();
    see(await columns(db));
  },
  async "migrator"(see) {
    const db = connect();
    const migrations = { "1": { up: (on) => on.schema.createTable("a").addColumn("n", "integer").execute(), down: (on) => on.schema.dropTable("a").execute() } };
    const migrator = new Migrator({ db, provider: { getMigrations: async () => migrations } });
    const { error, results } = await migrator.migrateToLatest();
    if (error) throw error;
    see(results, (await migrator.migrateDown()).results);
  },
  async "node-pg-migrate"(see) {
    const place = fs.mkdtempSync(path.join(os.tmpdir(), "migrate-"));
    keep(() => fs.rmSync(place, { recursive: true }));
    fs.writeFileSync(path.join(place, "1700000000000_first.cjs"), `exports.up = (pgm) => { pgm.createTable("users", { id: "id", name: { type: "varchar(100)", notNull: true }, at: { type: "timestamp", notNull: true, default: pgm.func("current_timestamp") } }); pgm.createIndex("users", "name"); };`);
    fs.writeFileSync(path.join(place, "1700000000001_second.cjs"), `exports.up = (pgm) => { pgm.addColumns("users", { size: { type: "integer", default: 3 } }); pgm.addConstraint("users", "size_check", { check: "size > 0" }); pgm.renameColumn("users", "name", "label"); };`);
    const logger = { info() {}, warn() {}, error() {}, debug() {} };
    const options = { databaseUrl: url, dir: place, migrationsTable: "pgmigrations", logger };
    see((await runner({ ...options, direction: "up" })).map((one) => one.name), await columns(connect()));
    see((await runner({ ...options, direction: "down" })).map((one) => one.name), (await columns(connect())).length);
  },
});
