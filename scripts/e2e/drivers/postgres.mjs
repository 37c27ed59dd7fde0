// postgres.js: it prepares every statement, describes it, and asks for the array types when it connects.

import assert from "node:assert/strict";
import postgres from "postgres";
import { address, refused, run } from "./checks.mjs";

const sql = postgres({ ...address, max: 2, connect_timeout: 10, onnotice: () => {} });

async function errors_at_prepare() {
  await refused("42601", () => sql`selec ${1}`);
  await refused("42P01", () => sql`select * from missing where id = ${1}`);
  assert.deepEqual([...(await sql`select 1 as one`)], [{ one: 1 }]);
}

async function types() {
  await sql`create table postgres_types (i int, t text, n numeric, d date, tz timestamptz, b boolean, nothing text)`;
  const when = new Date("2024-02-29T12:30:15.250Z");
  const row = { i: 7, t: "naïve 🦀", n: "12345.678", d: "2024-02-29", tz: when, b: true, nothing: null };
  await sql`insert into postgres_types ${sql(row)}`;
  const [found] = await sql`select i, t, n, d::text as d, tz, b, nothing from postgres_types where i = ${7}`;
  assert.deepEqual({ ...found }, row);
}

async function transactions() {
  const rows = [...Array(100).keys()].map((id) => ({ id, name: `row ${id}` }));
  await sql`create table postgres_rows (id int primary key, name text)`;
  await sql.begin("isolation level repeatable read", async (sql) => {
    await sql`insert into postgres_rows ${sql(rows)}`;
  });
  await assert.rejects(
    sql.begin(async (sql) => {
      await sql`delete from postgres_rows`;
      throw new Error("to roll back");
    }),
    /to roll back/,
  );
  assert.equal((await sql`select count(*)::int as n from postgres_rows`)[0].n, 100);
  await refused("23505", () => sql`insert into postgres_rows values (1, 'twice')`);
}

// A portal that suspends after seven rows.
async function a_cursor() {
  const sizes = [];
  await sql`select * from postgres_rows order by id`.cursor(7, (rows) => {
    sizes.push(rows.length);
  });
  assert.equal(sizes.reduce((sum, size) => sum + size), 100);
  assert.equal(sizes.length, 15);
}

await run([errors_at_prepare, types, transactions, a_cursor]);
await sql.end();
