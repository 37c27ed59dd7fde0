// node-postgres with its cursors, streams and COPY.

import { pipeline } from "node:stream/promises";
import { Readable, Writable } from "node:stream";
import pg from "pg";
import copy from "pg-copy-streams";
import Cursor from "pg-cursor";
import QueryStream from "pg-query-stream";
import { address, keep, refused, serve } from "./harness.mjs";

async function connect(more = {}) {
  const client = new pg.Client({ ...address, ...more });
  await client.connect();
  keep(() => client.end());
  return client;
}

async function people() {
  const client = await connect();
  await client.query("create table people (id int primary key, name text, height numeric)");
  await client.query("insert into people select n, 'name ' || n, n / 4.0 from generate_series(1, 20) n");
  return client;
}

await serve({
  async "types"(see) {
    const client = await connect();
    const kinds = { int: 5, bigint: "9007199254740993", numeric: "1.50", text: "é'", bool: true, bytea: Buffer.from([0, 255]), "float8": 2.5,
      date: "2024-02-29", timestamp: "2024-02-29 01:02:03.004", timestamptz: new Date(0), interval: "1 day 02:00", uuid: "12345678-1234-5678-1234-567812345678",
      "int[]": [1, null, 3], "text[]": ["a", 'b"c'] };
    for (const [kind, value] of Object.entries(kinds)) {
      const { rows, fields } = await client.query(`select $1::${kind} as v`, [value]);
      see(kind, rows[0].v, fields[0].dataTypeID, fields[0].dataTypeSize);
    }
  },
  async "json values"(see) {
    see((await (await connect()).query("select $1::jsonb as b, $2::json as j", [{ a: [1, null] }, JSON.stringify([1])])).rows);
  },
  async "points and ranges"(see) {
    see((await (await connect()).query("select '(1,2)'::point as p, '[1,5)'::int4range as r")).rows);
  },
  async "results"(see) {
    const client = await people();
    const result = await client.query("update people set name = 'x' where id < 4 returning id");
    see(result.command, result.rowCount, result.rows, result.oid);
    see(await client.query({ text: "select id, id from people where id < 3 order by 1", rowMode: "array" }).then((found) => found.rows));
    see((await client.query("select 1 as a; select 2 as b")).map((one) => one.rows));
  },
  async "named statement"(see) {
    const client = await people();
    for (const id of [1, 2, 99]) see((await client.query({ name: "by id", text: "select name from people where id = $1", values: [id] })).rows);
  },
  async "pool and transactions"(see) {
    await people();
    const pool = new pg.Pool({ ...address, max: 3 });
    keep(() => pool.end());
    see((await Promise.all([1, 2, 3, 4, 5, 6].map((id) => pool.query("select name from people where id = $1", [id])))).map((found) => found.rows[0].name));
    const client = await pool.connect();
    await client.query("begin isolation level repeatable read");
    await client.query("delete from people");
    await client.query("rollback");
    client.release();
    see((await pool.query("select count(*) from people")).rows);
  },
  async "savepoints"(see) {
    const client = await people();
    await client.query("begin");
    await client.query("savepoint s");
    await refused(see, () => client.query("insert into people values (1)"));
    await client.query("rollback to savepoint s");
    await client.query("insert into people values (100)");
    await client.query("commit");
    see((await client.query("select count(*) from people")).rows);
  },
  async "error fields"(see) {
    const client = await people();
    for (const text of ["insert into people values (1)", "select nothing from people", "select * from nowhere", "insert into people (name) values ('x')", "select 1 / 0"]) {
      try {
        await client.query(text);
      } catch (error) {
        see(error.code, error.severity, error.message, error.detail, error.hint, error.position, error.schema, error.table, error.column, error.constraint);
      }
    }
  },
  async "cursor"(see) {
    const client = await people();
    const cursor = client.query(new Cursor("select id from people where id > $1 order by id", [2]));
    see(await cursor.read(3), await cursor.read(5));
    await cursor.close();
    see((await client.query("select 1 as one")).rows);
  },
  async "stream of rows"(see) {
    const client = await people();
    const found = [];
    for await (const row of client.query(new QueryStream("select id from people order by id", [], { batchSize: 6 }))) found.push(row.id);
    see(found);
  },
  async "copy from"(see) {
    const client = await people();
    await pipeline(Readable.from(["50\ta\t1.5\n51\t", "\\N\t\\N\n"]), client.query(copy.from("copy people from stdin")));
    see((await client.query("select * from people where id >= 50 order by id")).rows);
    await refused(see, () => pipeline(Readable.from(["1\ta\t1\n"]), client.query(copy.from("copy people from stdin"))));
  },
  async "copy to"(see) {
    const client = await people();
    let text = "";
    await pipeline(client.query(copy.to("copy (select * from people where id < 4 order by id) to stdout with (format csv, header)")), new Writable({ write: (chunk, _, next) => ((text += chunk), next()) }));
    see(text);
  },
  async "notifications"(see) {
    const client = await connect();
    const heard = new Promise((resolve) => client.on("notification", (message) => resolve([message.channel, message.payload])));
    await client.query("listen news");
    await client.query("notify news, 'hello'");
    see(await heard);
  },
  async "notices"(see) {
    const client = await connect();
    client.on("notice", (notice) => see(notice.severity, notice.code, notice.message));
    await client.query("drop table if exists nowhere");
  },
  async "statement timeout"(see) {
    const client = await connect({ statement_timeout: 200 });
    await refused(see, () => client.query("select pg_sleep(10)"));
    see((await client.query("select 1 as one")).rows);
  },
  async "idle in transaction timeout"(see) {
    const client = await connect({ idle_in_transaction_session_timeout: 200 });
    await client.query("begin");
    const ended = await new Promise((resolve) => client.on("error", resolve));
    see(ended.code, ended.message);
  },
  async "settings at the start"(see) {
    const client = await connect({ application_name: "mine", options: "-c work_mem=8MB -c search_path=pg_catalog" });
    see((await client.query("select current_setting('application_name') as a, current_setting('work_mem') as w, current_schemas(false) as s")).rows);
  },
  async "many parameters"(see) {
    const client = await people();
    const values = [...Array(3000).keys()];
    see((await client.query(`select count(*) from people where id in (${values.map((n) => `$${n + 1}`).join(", ")})`, values)).rows);
  },
});
