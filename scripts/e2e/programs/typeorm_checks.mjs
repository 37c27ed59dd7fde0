// TypeORM: synchronize, repositories, relations, query builder, migrations, transactions.

import "reflect-metadata";
import { DataSource, EntitySchema, In, LessThan, Like, MoreThan, Table, TableColumn, TableIndex } from "typeorm";
import { address, keep, refused, serve } from "./harness.mjs";

const author = (constraint) => new EntitySchema({
  name: "Author", tableName: "authors",
  columns: { id: { type: Number, primary: true, generated: true }, name: { type: String, length: 40, unique: true }, born: { type: "date", nullable: true } },
  relations: { books: { type: "one-to-many", target: "Book", inverseSide: "author" } },
});
const book = (constraint) => new EntitySchema({
  name: "Book", tableName: "books",
  columns: { id: { type: Number, primary: true, generated: true }, title: { type: String }, price: { type: "numeric", precision: 10, scale: 2, default: 0 }, made: { type: "timestamptz", createDate: true },
    kind: { type: "varchar", length: 10, default: "paper" }, removed: { type: "timestamptz", deleteDate: true, nullable: true } },
  relations: { author: { type: "many-to-one", target: "Author", inverseSide: "books", nullable: true, createForeignKeyConstraints: constraint } },
  indices: [{ name: "books_title", columns: ["title", "price"] }],
  checks: [{ name: "books_price", expression: "price >= 0" }],
});

async function connect(entities, more = {}) {
  const source = new DataSource({ type: "postgres", ...address, username: address.user, entities, synchronize: entities.length > 0, ...more });
  await source.initialize();
  keep(() => source.destroy());
  return source;
}

async function library(constraint = false) {
  const source = await connect([author(constraint), book(constraint)]);
  const [authors, books] = [source.getRepository("Author"), source.getRepository("Book")];
  for (const [at, name] of ["Ada", "Grace", "Edsger"].entries()) {
    const one = await authors.save({ name, born: `190${at}-01-02` });
    for (let n = 0; n < at; n++) await books.save({ title: `${name} ${n}`, price: n + 0.5, author: one });
  }
  return { source, authors, books };
}

class First1700000000000 {
  async up(runner) {
    await runner.createTable(new Table({ name: "things", columns: [{ name: "id", type: "int", isPrimary: true, isGenerated: true, generationStrategy: "increment" }, { name: "name", type: "varchar", length: "20" }] }));
  }
  async down(runner) {
    await runner.dropTable("things");
  }
}
class Second1700000000001 {
  async up(runner) {
    await runner.addColumn("things", new TableColumn({ name: "size", type: "int", isNullable: true, default: "3" }));
    await runner.createIndex("things", new TableIndex({ name: "things_size", columnNames: ["size"] }));
    await runner.renameColumn("things", "name", "label");
  }
  async down(runner) {
    await runner.renameColumn("things", "label", "name");
    await runner.dropColumn("things", "size");
  }
}

const columns = (source) => source.query("select table_name, column_name, data_type, column_default, is_nullable from information_schema.columns where table_schema = 'public' and table_name <> 'migrations' order by 1, ordinal_position");

await serve({
  async "connects"(see) {
    const source = await connect([]);
    see(source.isInitialized, await source.query("select 1 as one"));
  },
  async "synchronize"(see) {
    const { source } = await library();
    await source.synchronize();
    see(await columns(source));
  },
  async "synchronize with foreign keys"(see) {
    const { source } = await library(true);
    see(await columns(source));
  },
  async "synchronize changes"(see) {
    const { source } = await library();
    await source.destroy();
    const changed = new EntitySchema({ name: "Author", tableName: "authors", columns: { id: { type: Number, primary: true, generated: true }, name: { type: String, length: 40, unique: true }, age: { type: Number, nullable: true } } });
    see(await columns(await connect([changed])));
  },
  async "plan of changes"(see) {
    const { source } = await library();
    await source.query("alter table books add column extra int");
    see((await source.driver.createSchemaBuilder().log()).upQueries.map((one) => one.query));
  },
  async "find"(see) {
    const { authors, books } = await library();
    see(await authors.find({ where: [{ name: Like("%a%") }, { born: MoreThan("1901-12-31") }], order: { id: "ASC" } }), await books.findAndCount({ select: { title: true }, where: { price: LessThan(1) }, order: { id: "ASC" }, take: 1 }));
    see(await authors.findOneBy({ id: In([2, 7]) }), await books.countBy({ author: { name: "Edsger" } }), await authors.existsBy({ name: "Nobody" }));
  },
  async "relations"(see) {
    const { authors, books } = await library();
    see(await authors.find({ relations: { books: true }, select: { id: true, name: true, books: { id: true, title: true } }, order: { id: "ASC", books: { id: "ASC" } } }));
    see(await books.find({ relations: { author: true }, select: { id: true, author: { name: true } }, relationLoadStrategy: "query", order: { id: "ASC" } }));
  },
  async "query builder"(see) {
    const { source, books } = await library();
    see(await books.createQueryBuilder("b").leftJoin("b.author", "a").select("a.name", "name").addSelect("sum(b.price)", "worth").groupBy("a.name").having("count(*) > :n", { n: 0 }).orderBy("a.name").getRawMany());
    see(await books.createQueryBuilder("b").innerJoinAndSelect("b.author", "a").where("b.price > :p", { p: 0.6 }).orderBy("b.id", "DESC").skip(0).take(2).getMany().then((found) => found.map((one) => [one.title, one.author.name])));
    see(await source.createQueryBuilder().select("x.n", "n").from((query) => query.select("count(*)", "n").from("books", "k"), "x").getRawMany());
  },
  async "insert, upsert and returning"(see) {
    const { source, authors } = await library();
    see((await source.createQueryBuilder().insert().into("Author").values([{ name: "a" }, { name: "b" }]).returning("id, name").execute()).raw);
    await authors.upsert([{ name: "Ada", born: "1815-12-10" }], ["name"]);
    see((await authors.findOneBy({ name: "Ada" })).born, (await source.createQueryBuilder().insert().into("Author").values({ name: "Ada" }).orIgnore().execute()).raw);
  },
  async "updates and deletes"(see) {
    const { books } = await library();
    see((await books.update({ price: LessThan(1) }, { kind: "cheap" })).affected, (await books.increment({ id: 1 }, "price", 2)).affected, (await books.delete({ kind: "cheap" })).affected);
  },
  async "soft deletes"(see) {
    const { books } = await library();
    await books.softDelete({ id: 1 });
    see(await books.count(), await books.count({ withDeleted: true }), (await books.restore({ id: 1 })).affected);
  },
  async "transactions"(see) {
    const { source } = await library();
    await refused(see, () => source.transaction("REPEATABLE READ", async (manager) => { await manager.delete("Author", {  id: 1 }); await manager.insert("Author", { name: "Grace" }); }));
    see(await source.getRepository("Author").count());
  },
  async "nested transactions"(see) {
    const { source } = await library();
    await source.transaction(async (manager) => {
      await refused(see, () => manager.transaction((inner) => inner.insert("Author", { name: "Grace" })));
      await manager.insert("Author", { name: "kept" });
    });
    see(await source.getRepository("Author").count());
  },
  async "locks"(see) {
    const { source } = await library();
    see(await source.transaction((manager) => manager.find("Author", { lock: { mode: "pessimistic_write", onLocked: "skip_locked" }, order: { id: "ASC" } })));
  },
  async "streams"(see) {
    const { books } = await library();
    const stream = await books.createQueryBuilder("b").select("b.title", "title").orderBy("b.id").stream();
    const found = [];
    for await (const row of stream) found.push(row.title);
    see(found);
  },
  async "arrays, uuid and json"(see) {
    const thing = new EntitySchema({ name: "Thing", columns: { id: { type: "uuid", primary: true, generated: "uuid" }, tags: { type: "text", array: true }, code: { type: "uuid" }, bytes: { type: "bytea", nullable: true } } });
    const source = await connect([thing]);
    await source.getRepository("Thing").save({ tags: ["a", "b"], code: "12345678-1234-5678-1234-567812345678", bytes: Buffer.from([1]) });
    see((await source.getRepository("Thing").find()).map(({ id, ...rest }) => rest));
  },
  async "enum and jsonb"(see) {
    const thing = new EntitySchema({ name: "Thing", columns: { id: { type: Number, primary: true, generated: true }, mood: { type: "enum", enum: ["sad", "ok"] }, body: { type: "jsonb" } } });
    const source = await connect([thing]);
    await source.getRepository("Thing").save({ mood: "ok", body: { a: 1 } });
    see(await source.getRepository("Thing").find());
  },
  async "migrations"(see) {
    const source = await connect([], { migrations: [First1700000000000, Second1700000000001] });
    see((await source.runMigrations()).map((one) => one.name), await columns(source));
    await source.undoLastMigration();
    see(await columns(source), await source.showMigrations());
  },
  async "tables as they are"(see) {
    const { source } = await library();
    const runner = source.createQueryRunner();
    keep(() => runner.release());
    const table = await runner.getTable("books");
    see(table.columns.map((one) => [one.name, one.type, one.default, one.isNullable, one.isPrimary, one.isUnique]), table.indices.map((one) => [one.name, one.columnNames]), table.checks.map((one) => [one.name, one.expression]));
    await runner.clearDatabase();
    see(await runner.hasTable("books"));
  },
});
