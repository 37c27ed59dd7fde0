// TypeORM: it asks for the version, the database and the schema when it connects; rows as objects.

import assert from "node:assert/strict";
import "reflect-metadata";
import { DataSource, EntitySchema } from "typeorm";
import { address, refused, run } from "./checks.mjs";

const Account = new EntitySchema({
  name: "Account",
  tableName: "typeorm_accounts",
  columns: {
    id: { type: "int", primary: true, generated: "increment" },
    owner: { type: "varchar", length: 40, unique: true },
    balance: { type: "numeric", precision: 12, scale: 2 },
    opened: { type: "date", nullable: true },
    changed: { type: "timestamptz", nullable: true },
  },
});

const source = new DataSource({
  type: "postgres",
  host: address.host,
  port: address.port,
  username: address.user,
  database: address.database,
  entities: [Account],
  // It looks for the extensions that its columns need.
  installExtensions: false,
});

async function connects() {
  await source.initialize();
  assert.equal(source.driver.schema, "public");
}

async function rows() {
  await source.query(
    "create table typeorm_accounts (id serial primary key, owner varchar(40) unique, balance numeric(12,2), opened date, changed timestamptz)",
  );
  const accounts = source.getRepository(Account);
  const changed = new Date("2024-02-29T12:30:15.250Z");
  await accounts.save({ owner: "alice", balance: "12.50", opened: "2024-02-29", changed });
  await accounts.insert([...Array(20).keys()].map((n) => ({ owner: `owner ${n}`, balance: n, opened: null })));
  const found = await accounts.findOneBy({ owner: "alice" });
  assert.deepEqual([found.balance, found.opened, found.changed], ["12.50", "2024-02-29", changed]);
  await accounts.update({ owner: "alice" }, { balance: "13.75" });
  assert.equal((await accounts.findOneByOrFail({ owner: "alice" })).balance, "13.75");
  assert.equal(await accounts.count(), 21);
  await refused("23505", () => accounts.insert({ owner: "alice", balance: 0 }));
}

async function transactions() {
  const accounts = source.getRepository(Account);
  await assert.rejects(
    source.transaction("REPEATABLE READ", async (manager) => {
      await manager.delete(Account, { owner: "alice" });
      throw new Error("to roll back");
    }),
    /to roll back/,
  );
  await source.transaction((manager) => manager.delete(Account, { owner: "owner 1" }));
  assert.equal(await accounts.count(), 20);
  await refused("42P01", () => source.query("select * from missing where id = $1", [1]));
}

await run([connects, rows, transactions]);
await source.destroy();
