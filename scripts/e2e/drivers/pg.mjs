// node-postgres: the simple and the extended protocol, statements with names, transactions, a pool.

import assert from "node:assert/strict";
import pg from "pg";
import { address, refused, run } from "./checks.mjs";

const client = new pg.Client({ ...address, connectionTimeoutMillis: 10_000 });
await client.connect();

async function errors_at_prepare() {
  await refused("42601", () => client.query("selec $1::int", [1]));
  await refused("42P01", () => client.query("select * from missing where id = $1", [1]));
  await refused("0A000", () => client.query("create function f() returns int language sql as 'select 1'"));
  assert.deepEqual((await client.query("select 1 as one")).rows, [{ one: 1 }]);
}

async function types() {
  await client.query("create table pg_types (i int, t text, n numeric, d date, tz timestamptz, b boolean, nothing text)");
  const when = new Date("2024-02-29T12:30:15.250Z");
  const sent = [7, "naïve 🦀", "12345.678", "2024-02-29", when, true, null];
  await client.query("insert into pg_types values ($1, $2, $3, $4, $5, $6, $7)", sent);
  const { rows } = await client.query("select i, t, n, d::text as d, tz, b, nothing from pg_types where i = $1", [7]);
  assert.deepEqual(Object.values(rows[0]), sent);
}

async function prepared_statements() {
  await client.query("create table pg_rows (id int primary key, name text)");
  for (let id = 0; id < 50; id += 1) {
    await client.query({ name: "add", text: "insert into pg_rows values ($1, $2)", values: [id, `row ${id}`] });
  }
  const found = await client.query({ name: "get", text: "select name from pg_rows where id = $1", values: [17], rowMode: "array" });
  assert.deepEqual(found.rows, [["row 17"]]);
  await refused("23505", () => client.query({ name: "add", text: "insert into pg_rows values ($1, $2)", values: [1, "twice"] }));
}

async function transactions() {
  await client.query("begin");
  await client.query("delete from pg_rows");
  await refused("42703", () => client.query("select missing from pg_rows"));
  await refused("25P02", () => client.query("select 1"));
  await client.query("rollback");
  const { rows } = await client.query("select count(*)::int as n from pg_rows");
  assert.equal(rows[0].n, 50);
}

async function a_pool() {
  const pool = new pg.Pool({ ...address, max: 4 });
  const answers = await Promise.all([...Array(20).keys()].map((n) => pool.query("select $1::int + 1 as n", [n])));
  assert.deepEqual(answers.map((answer) => answer.rows[0].n), [...Array(20).keys()].map((n) => n + 1));
  await pool.end();
}

await run([errors_at_prepare, types, prepared_statements, transactions, a_pool]);
await client.end();
