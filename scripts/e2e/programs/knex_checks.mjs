// Knex: schema builder, queries, migrations, transactions; Objection's models over it.

import knex from "knex";
import { Model } from "objection";
import { address, keep, refused, serve } from "./harness.mjs";

function connect() {
  const found = knex({ client: "pg", connection: address, pool: { min: 0, max: 3 } });
  keep(() => found.destroy());
  return found;
}

async function shop() {
  const db = connect();
  await db.schema.createTable("items", (table) => {
    table.increments("id");
    table.string("name", 40).notNullable().unique();
    table.decimal("price", 10, 2).defaultTo(0).index();
    table.timestamp("made").defaultTo("2024-01-01T00:00:00Z");
    table.integer("maker");
  });
  await db.schema.createTable("makers", (table) => { table.increments(); table.text("name"); });
  await db("makers").insert([{ name: "Acme" }, { name: "Bolt" }]);
  await db("items").insert([...Array(8).keys()].map((n) => ({ name: `item ${n}`, price: n / 2, maker: (n % 2) + 1 })));
  return db;
}

await serve({
  async "create table"(see) {
    const db = await shop();
    await db.schema.createTableIfNotExists("items", () => {});
    see(await db.schema.hasTable("items"), await db.schema.hasColumn("items", "price"), await db("items").columnInfo());
  },
  async "all kinds of columns"(see) {
    const db = connect();
    await db.schema.createTable("kinds", (table) => {
      table.bigIncrements("id"); table.text("a"); table.float("b"); table.double("c"); table.boolean("d"); table.date("e"); table.time("f"); table.datetime("g", { useTz: false });
      table.binary("h"); table.uuid("i"); table.specificType("j", "int[]"); table.smallint("k"); table.bigint("l"); table.timestamps(true, true); table.comment("kinds of columns");
    });
    see(await db("kinds").columnInfo());
  },
  async "json column"(see) {
    const db = connect();
    await db.schema.createTable("documents", (table) => { table.increments(); table.jsonb("body"); });
    await db("documents").insert({ body: { a: { b: 1 } } });
    see(await db("documents").whereJsonPath("body", "$.a.b", "=", 1), await db("documents").whereJsonObject("body", { a: { b: 1 } }).count());
  },
  async "enum column"(see) {
    const db = connect();
    await db.schema.createTable("moods", (table) => { table.enu("m", ["sad", "ok"]); });
    await refused(see, () => db("moods").insert({ m: "angry" }));
  },
  async "native enum column"(see) {
    const db = connect();
    await db.schema.createTable("moods", (table) => { table.enu("m", ["sad", "ok"], { useNative: true, enumName: "mood" }); });
    await refused(see, () => db("moods").insert({ m: "angry" }));
  },
  async "foreign key"(see) {
    const db = await shop();
    await db.schema.createTable("sales", (table) => { table.increments(); table.integer("item").unsigned().references("id").inTable("items").onDelete("CASCADE"); });
    await refused(see, () => db("sales").insert({ item: 99 }));
  },
  async "alter table"(see) {
    const db = await shop();
    await db.schema.alterTable("items", (table) => { table.integer("stock").defaultTo(5).notNullable(); table.renameColumn("made", "at"); table.dropColumn("maker"); });
    await db.schema.alterTable("items", (table) => { table.string("name", 80).nullable().alter(); table.unique(["name", "price"], { indexName: "items_both" }); });
    await db.schema.renameTable("items", "things");
    see(await db("things").columnInfo());
    await db.schema.dropTable("things");
    see(await db.schema.hasTable("things"));
  },
  async "checks and partial indexes"(see) {
    const db = await shop();
    await db.schema.alterTable("items", (table) => { table.check("price >= 0", [], "price_check"); table.index(["price"], "some", { predicate: db.whereNotNull("price") }); });
    await refused(see, () => db("items").insert({ name: "x", price: -1 }));
  },
  async "views"(see) {
    const db = await shop();
    await db.schema.createView("cheap", (view) => { view.columns(["name"]); view.as(db("items").select("name").where("price", "<", 1)); });
    see(await db("cheap").orderBy("name"));
    await db.schema.dropViewIfExists("cheap");
  },
  async "selects"(see) {
    const db = await shop();
    see(await db("items as i").join("makers as m", "m.id", "i.maker").select("i.name", "m.name as maker").where("price", ">", 1).andWhere((query) => query.whereIn("i.id", [1, 5, 7]).orWhere("i.name", "ilike", "ITEM 3")).orderBy("i.id"));
    see(await db("items").select("maker").count("* as n").sum({ worth: "price" }).groupBy("maker").havingRaw("count(*) > ?", [1]).orderBy("maker"), await db("items").first("name").orderBy("price", "desc"), await db("items").pluck("id").whereBetween("price", [1, 2]).orderBy("id"));
    see(await db("items").distinct("maker").orderBy("maker").limit(1).offset(1), await db.select("*").from(db("items").max("price as top").as("x")), await db("items").whereExists(db("makers").whereRaw("makers.id = items.maker")).count());
  },
  async "unions, windows and with"(see) {
    const db = await shop();
    see(await db("items").select("name").where("id", 1).union([db("makers").select("name").where("id", 1)]).orderBy("name"), await db("items").select("name").rank("r", ["price"], ["maker"]).orderBy("id").limit(3));
    see(await db.with("top", db("items").select("name", "price").orderBy("price", "desc").limit(2)).select("*").from("top").orderBy("price"), await db.withRecursive("t", ["n"], (query) => query.from(db.raw("(values (1)) as v (n)")).select("n").unionAll((more) => more.select(db.raw("n + 1")).from("t").where("n", "<", 4))).from("t").select());
  },
  async "insert and returning"(see) {
    const db = await shop();
    see(await db("items").insert({ name: "new" }, ["id", "price"]), await db("items").update({ price: db.raw("price + 1") }).where("id", "<", 3).returning("price"), await db("items").del().where("maker", 1));
    see((await db.batchInsert("makers", [...Array(100).keys()].map((n) => ({ name: `m${n}` })), 30).returning("id")).length, await db("items").increment("price", 5).where("id", 2));
  },
  async "upsert"(see) {
    const db = await shop();
    see(await db("items").insert({ name: "item 1", price: 9 }).onConflict("name").merge(["price"]).returning(["id", "price"]), await db("items").insert({ name: "item 1" }).onConflict("name").ignore().returning("id"));
  },
  async "transactions"(see) {
    const db = await shop();
    await refused(see, () => db.transaction(async (transaction) => { await transaction("items").del(); await transaction("items").insert({ name: null }); }, { isolationLevel: "repeatable read" }));
    see(await db("items").count());
  },
  async "nested transactions"(see) {
    const db = await shop();
    await db.transaction(async (outer) => {
      await refused(see, () => outer.transaction((inner) => inner("items").insert({ name: "item 1" })));
      await outer("items").del();
    });
    see(await db("items").count());
  },
  async "locks"(see) {
    const db = await shop();
    see(await db.transaction((transaction) => transaction("items").where("id", "<", 3).orderBy("id").forUpdate().skipLocked().select("id")), await db.transaction((transaction) => transaction("items").where("id", 1).forShare().noWait().select("id")));
  },
  async "migrations"(see) {
    const db = connect();
    const steps = { "1_first": { up: (on) => on.schema.createTable("a", (table) => table.increments()), down: (on) => on.schema.dropTable("a") }, "2_second": { up: (on) => on.schema.alterTable("a", (table) => table.text("t")), down: (on) => on.schema.alterTable("a", (table) => table.dropColumn("t")) } };
    const migrationSource = { getMigrations: async () => Object.keys(steps), getMigrationName: (name) => name, getMigration: async (name) => steps[name] };
    see(await db.migrate.latest({ migrationSource }), await db("a").columnInfo(), await db.migrate.currentVersion({ migrationSource }), await db.migrate.down({ migrationSource }), await db("a").columnInfo());
  },
  async "stream"(see) {
    const db = await shop();
    const found = [];
    for await (const row of db("items").select("id").orderBy("id").stream()) found.push(row.id);
    see(found);
  },
  async "objection's models and relations"(see) {
    const db = await shop();
    class Item extends Model { static tableName = "items"; }
    class Maker extends Model { static tableName = "makers"; static relationMappings = () => ({ items: { relation: Model.HasManyRelation, modelClass: Item, join: { from: "makers.id", to: "items.maker" } } }); }
    see(await Maker.query(db).withGraphFetched("items(few)").modifiers({ few: (query) => query.select("name").where("price", ">", 2).orderBy("items.id") }).orderBy("id").then((found) => found.map((one) => one.toJSON())));
    see((await Maker.query(db).insertGraph({ name: "Core", items: [{ name: "c1" }, { name: "c2" }] })).items.map((one) => one.maker), (await Maker.query(db).joinRelated("items").where("items.name", "c1").first()).name, await Item.query(db).findById(1).patch({ price: 3 }));
  },
});
