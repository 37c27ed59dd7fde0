// What the programs of the drivers for Node share: the server's address, and a look at errors.

import assert from "node:assert/strict";

export const address = {
  host: "127.0.0.1",
  port: Number(process.env.PGPORT),
  user: process.env.PGUSER,
  database: process.env.PGDATABASE,
};

// The SQLSTATE with which `work` must fail.
export async function refused(sqlstate, work) {
  try {
    await work();
  } catch (error) {
    assert.equal((error.original ?? error.driverError ?? error).code, sqlstate, String(error));
    return;
  }
  assert.fail(`no error ${sqlstate}`);
}

// Runs checks in turn, each under its name.
export async function run(checks) {
  for (const check of checks) {
    console.log(check.name);
    await check();
  }
  console.log("done");
}
