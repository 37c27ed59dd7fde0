// Sequelize: it sets the time zone and asks for the version when it connects; rows as objects.

import assert from "node:assert/strict";
import { DataTypes, Sequelize } from "sequelize";
import { address, refused, run } from "./checks.mjs";

const sequelize = new Sequelize(address.database, address.user, "", {
  ...address,
  dialect: "postgres",
  logging: false,
  pool: { max: 2 },
});

const Account = sequelize.define(
  "Account",
  {
    owner: { type: DataTypes.STRING(40), unique: true },
    balance: DataTypes.DECIMAL(12, 2),
    opened: DataTypes.DATEONLY,
    active: DataTypes.BOOLEAN,
  },
  { tableName: "sequelize_accounts" },
);

async function connects() {
  await sequelize.authenticate();
  assert.deepEqual(await sequelize.query("select current_setting('timezone') as zone", { plain: true }), { zone: "<+00>-00" });
  assert.match(await sequelize.databaseVersion(), /^15\./);
}

async function rows() {
  await sequelize.query(
    'create table sequelize_accounts (id serial primary key, owner varchar(40) unique, balance numeric(12,2), opened date, active boolean, "createdAt" timestamptz not null, "updatedAt" timestamptz not null)',
  );
  const account = await Account.create({ owner: "alice", balance: "12.50", opened: "2024-02-29", active: null });
  await Account.bulkCreate([...Array(20).keys()].map((n) => ({ owner: `owner ${n}`, balance: n, opened: "2024-01-01" })));
  await account.update({ balance: "13.75" });
  const found = await Account.findOne({ where: { owner: "alice" } });
  assert.deepEqual([found.balance, found.opened, found.active], ["13.75", "2024-02-29", null]);
  assert.ok(found.createdAt instanceof Date);
  assert.equal(await Account.count(), 21);
  await refused("23505", () => Account.create({ owner: "alice" }));
}

async function transactions() {
  await assert.rejects(
    sequelize.transaction(async (transaction) => {
      await Account.destroy({ where: {}, transaction });
      throw new Error("to roll back");
    }),
    /to roll back/,
  );
  await sequelize.transaction({ isolationLevel: "REPEATABLE READ" }, async (transaction) => {
    await Account.destroy({ where: { owner: "owner 1" }, transaction });
  });
  assert.equal(await Account.count(), 20);
  await refused("42P01", () => sequelize.query("select * from missing"));
}

await run([connects, rows, transactions]);
await sequelize.close();
