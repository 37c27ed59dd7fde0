// node-postgres and postgres.js over TLS: each knows the server by its certificate, and logs in by password.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import pg from "pg";
import postgres from "postgres";

const query = "select ssl from pg_stat_ssl where pid = pg_backend_pid()";
const { PGHOST: host, PGPORT: port, PGUSER: user, PGPASSWORD: password, PGSSLROOTCERT: root } = process.env;
const ssl = { ca: readFileSync(root, "utf8"), rejectUnauthorized: true, servername: host };

const client = new pg.Client({ host, port, user, password, database: "postgres", ssl });
await client.connect();
assert.deepEqual((await client.query(query)).rows, [{ ssl: true }]);
await client.end();

const sql = postgres({ host, port, user, password, database: "postgres", ssl, max: 1 });
assert.deepEqual([...(await sql.unsafe(query))], [{ ssl: true }]);
await sql.end();
console.log("done");
