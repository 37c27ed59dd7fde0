// postgres.js: tagged templates, helpers, transactions, cursors, COPY, types that it asks the catalog for.

import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import postgres from "postgres";
import { address, keep, refused, serve } from "./harness.mjs";

function connect(more = {}) {
  const sql = postgres({ ...address, max: 2, onnotice: () => {}, ...more });
  keep(() => sql.end({ timeout: 1 }));
  return sql;
}

async function people() {
  const sql = connect();
  await sql`create table people (id int primary key, name text, tags text[])`;
  await sql`insert into people ${sql([...Array(20).keys()].map((n) => ({ id: n + 1, name: `name ${n + 1}`, tags: ["a", `t${n}`] })), "id", "name", "tags")}`;
  return sql;
}

await serve({
  async "types"(see) {
    const sql = connect();
    see([...(await sql`select ${5}::int as i, ${"9007199254740993"}::bigint as l, ${"1.50"}::numeric as n, ${true}::bool as b, ${new Date(0)}::timestamptz as t, ${Buffer.from([0, 255])}::bytea as y, ${null}::text as z, ${"2024-02-29"}::date as d`)]);
  },
  async "arrays"(see) {
    const sql = connect();
    see([...(await sql`select ${[1, 2, 3]}::int[] as i, ${["a", 'b"c']}::text[] as t, array[array[1,2],array[3,null]] as n`)]);
  },
  async "arrays by their types in the catalog"(see) {
    const sql = connect();
    await sql`create table lists (u uuid[], d date[])`;
    await sql`insert into lists values (${["12345678-1234-5678-1234-567812345678"]}, ${["2024-02-29"]})`;
    see([...(await sql`select * from lists`)]);
  },
  async "json"(see) {
    const sql = connect();
    see([...(await sql`select ${sql.json({ a: [1, null] })} as j`)]);
  },
  async "fragments and lists"(see) {
    const sql = await people();
    const where = sql`where id in ${sql([1, 3, 99])}`;
    see([...(await sql`select ${sql(["id", "name"])} from ${sql("people")} ${where} order by ${sql("id")}`)]);
    see([...(await sql`select id from people where name = any(${["name 2", "name 4"]}) order by id`)]);
  },
  async "inserts and updates of objects"(see) {
    const sql = await people();
    see([...(await sql`insert into people ${sql({ id: 50, name: "x" })} returning *`)], [...(await sql`update people set ${sql({ name: "y" }, "name")} where id = 50 returning name`)]);
    see([...(await sql`update people set name = v.name from (values ${sql([[1, "one"], [2, "two"]])}) as v (id, name) where people.id = v.id::int returning people.id, people.name`)]);
  },
  async "results"(see) {
    const sql = await people();
    const found = await sql`delete from people where id > 15`;
    see(found.count, found.command, found.columns);
    const described = await sql`select id, name from people where id = 1`;
    see(described.columns.map((column) => [column.name, column.type, column.number]), [...(await sql`select id, name from people where id < 3 order by 1`.values())]);
  },
  async "description without running"(see) {
    const found = await (await people())`select id, name from people where id = ${1} and tags = ${["a"]}`.describe();
    see(found.types, found.columns.map((column) => [column.name, column.type]));
  },
  async "transactions"(see) {
    const sql = await people();
    await refused(see, () => sql.begin(async (sql) => { await sql`delete from people`; await sql`select 1 / 0`; }));
    see(await sql.begin("isolation level repeatable read read only", async (sql) => (await sql`select count(*) from people`)[0]));
  },
  async "savepoints"(see) {
    const sql = await people();
    await sql.begin(async (sql) => {
      await sql`delete from people where id = 1`;
      await refused(see, () => sql.savepoint((sql) => sql`insert into people (id) values (2)`));
    });
    see([...(await sql`select count(*) from people`)]);
  },
  async "cursor"(see) {
    const sql = await people();
    for await (const rows of sql`select id from people order by id`.cursor(7)) see(rows.map((row) => row.id));
  },
  async "cursor left early"(see) {
    const sql = await people();
    await sql`select id from people order by id`.cursor(5, (rows) => { see(rows.length); return sql.CLOSE; });
    see([...(await sql`select 1 as one`)]);
  },
  async "row by row"(see) {
    const sql = await people();
    const found = [];
    await sql`select id from people order by id`.forEach((row) => found.push(row.id));
    see(found);
  },
  async "copy"(see) {
    const sql = await people();
    await pipeline(Readable.from(["60\tx\t{}\n"]), await sql`copy people from stdin`.writable());
    let text = "";
    for await (const part of await sql`copy (select id, name from people where id > 18 order by id) to stdout with csv`.readable()) text += part;
    see(text);
  },
  async "listen"(see) {
    const sql = connect();
    const heard = new Promise((resolve) => sql.listen("news", resolve));
    await new Promise((resolve) => setTimeout(resolve, 300));
    await sql.notify("news", "hello");
    see(await heard);
  },
  async "simple and unsafe"(see) {
    const sql = await people();
    see([...(await sql`select 1 as a; select 2 as b`.simple())].map((one) => [...one]), [...(await sql.unsafe("select id from people where id = $1", [3]))]);
  },
  async "pipelined queries"(see) {
    const sql = await people();
    see((await Promise.all([...Array(50).keys()].map((n) => sql`select ${n}::int + count(*) as n from people`))).map((rows) => Number(rows[0].n)));
  },
  async "errors"(see) {
    const sql = await people();
    for (const query of [sql`insert into people (id) values (1)`, sql`select nothing from people`, sql`select * from nowhere`])
      await query.catch((error) => see(error.code, error.message, error.detail, error.position, error.table_name, error.constraint_name));
  },
  async "cancel"(see) {
    const sql = connect();
    const query = sql`select pg_sleep(10)`;
    setTimeout(() => query.cancel(), 300);
    await refused(see, () => query);
  },
});
