// Sequelize: sync, associations, queries, transactions, the query interface of its migrations.

import { DataTypes, Op, Sequelize } from "sequelize";
import { address, keep, refused, serve } from "./harness.mjs";

function connect(more = {}) {
  const sequelize = new Sequelize(address.database, address.user, address.password, { ...address, dialect: "postgres", logging: false, pool: { max: 3 }, ...more });
  keep(() => sequelize.close());
  return sequelize;
}

// Authors with their books; a foreign key in the database is made in one check alone.
async function library(constraints = false) {
  const sequelize = connect();
  const Author = sequelize.define("Author", { name: { type: DataTypes.STRING(40), unique: true, allowNull: false }, born: DataTypes.DATEONLY }, { timestamps: false });
  const Book = sequelize.define("Book", { title: DataTypes.STRING, price: DataTypes.DECIMAL(10, 2), soldAt: DataTypes.DATE, inPrint: { type: DataTypes.BOOLEAN, defaultValue: true } }, { indexes: [{ fields: ["title", "price"] }] });
  Author.hasMany(Book, { as: "books", foreignKey: "authorId", constraints });
  Book.belongsTo(Author, { as: "author", foreignKey: "authorId", constraints });
  await sequelize.sync();
  for (const [at, name] of ["Ada", "Grace", "Edsger"].entries()) {
    const author = await Author.create({ name, born: `190${at}-01-02` });
    for (let n = 0; n < at; n++) await Book.create({ title: `${name} ${n}`, price: n + 0.5, authorId: author.id });
  }
  return { sequelize, Author, Book };
}

const plain = (rows) => rows.map((row) => { const { createdAt, updatedAt, ...rest } = row.get({ plain: true }); return rest; });

await serve({
  async "authenticate"(see) {
    const sequelize = connect();
    await sequelize.authenticate();
    see((await sequelize.databaseVersion()).slice(0, 2), await sequelize.query("select current_setting('timezone') as zone", { plain: true }));
  },
  async "sync"(see) {
    const { sequelize } = await library();
    await sequelize.sync();
    see((await sequelize.getQueryInterface().showAllTables()).map((table) => table.tableName ?? table).sort());
  },
  async "sync with force"(see) {
    const { sequelize, Author } = await library();
    await sequelize.sync({ force: true });
    see(await Author.count());
  },
  async "sync that alters"(see) {
    const { sequelize, Author } = await library();
    sequelize.define("Author", { name: { type: DataTypes.STRING(80), allowNull: false }, born: DataTypes.DATEONLY, age: DataTypes.INTEGER }, { timestamps: false });
    await sequelize.models.Author.sync({ alter: true });
    see(await sequelize.getQueryInterface().describeTable("Authors"), await Author.count());
  },
  async "sync with foreign keys"(see) {
    const { sequelize } = await library(true);
    see(await sequelize.getQueryInterface().getForeignKeyReferencesForTable("Books").then((found) => found.map((one) => [one.columnName, one.referencedTableName])));
  },
  async "finders"(see) {
    const { Author, Book } = await library();
    see(plain(await Book.findAll({ where: { price: { [Op.gt]: 0.6 }, title: { [Op.iLike]: "%e%" } }, order: [["price", "DESC"], ["id", "ASC"]], limit: 2 })));
    see(await Author.findAndCountAll({ where: { [Op.or]: [{ name: "Ada" }, { born: { [Op.gte]: "1902-01-01" } }] } }).then(({ count, rows }) => [count, plain(rows)]), (await Author.findByPk(2)).name);
  },
  async "eager loading"(see) {
    const { Author, Book } = await library();
    see(plain(await Author.findAll({ include: [{ model: Book, as: "books", attributes: ["title"] }], order: ["id", [{ model: Book, as: "books" }, "id", "ASC"]] })));
    see(plain(await Book.findAll({ attributes: ["title"], include: { model: Author, as: "author", attributes: ["name"], where: { name: "Edsger" } }, order: ["id"] })));
    see(plain(await Author.findAll({ include: [{ model: Book, as: "books", separate: true, attributes: ["title", "authorId"], order: ["id"] }], order: ["id"], limit: 2, offset: 1 })));
  },
  async "aggregates"(see) {
    const { sequelize, Book } = await library();
    see(await Book.sum("price"), await Book.max("price"), plain(await Book.findAll({ attributes: ["authorId", [sequelize.fn("COUNT", sequelize.col("id")), "n"]], group: ["authorId"], having: sequelize.literal("count(id) > 1") })));
  },
  async "bulk create and upsert"(see) {
    const { Author } = await library();
    see((await Author.bulkCreate([...Array(50).keys()].map((n) => ({ name: `n${n}` })), { returning: true })).length);
    await Author.bulkCreate([{ name: "Ada", born: "1815-12-10" }], { updateOnDuplicate: ["born"], conflictAttributes: ["name"] });
    see((await Author.upsert({ id: 2, name: "Grace H." }))[0].name, (await Author.findOrCreate({ where: { name: "Ada" }, transaction: null }))[1], (await Author.findOne({ where: { name: "Ada" } })).born);
  },
  async "find or create"(see) {
    const { Author } = await library();
    see((await Author.findOrCreate({ where: { name: "New" } }))[1], (await Author.findOrCreate({ where: { name: "New" } }))[1]);
  },
  async "updates and deletes"(see) {
    const { Book } = await library();
    see((await Book.update({ inPrint: false }, { where: { price: { [Op.lt]: 1 } } }))[0], await Book.increment("price", { by: 2, where: { id: 1 } }).then(() => Book.findByPk(1)).then((one) => one.price), await Book.destroy({ where: { inPrint: false } }));
  },
  async "transactions"(see) {
    const { sequelize, Author } = await library();
    await refused(see, () => sequelize.transaction(async (transaction) => { await Author.destroy({ where: {}, transaction }); await Author.create({ name: null }, { transaction, validate: false }); }));
    await sequelize.transaction({ isolationLevel: "REPEATABLE READ" }, (transaction) => Author.create({ name: "in" }, { transaction }));
    see(await Author.count());
  },
  async "nested transactions"(see) {
    const { sequelize, Author } = await library();
    await sequelize.transaction(async (transaction) => {
      await sequelize.transaction({ transaction }, (inner) => Author.destroy({ where: {}, transaction: inner })).catch(() => {});
      const inner = await sequelize.transaction({ transaction });
      await Author.create({ name: "lost" }, { transaction: inner });
      await inner.rollback();
      await Author.create({ name: "kept" }, { transaction });
    });
    see(plain(await Author.findAll({ order: ["id"] })));
  },
  async "locks"(see) {
    const { sequelize, Author } = await library();
    await sequelize.transaction(async (transaction) => see(plain(await Author.findAll({ lock: transaction.LOCK.UPDATE, skipLocked: true, order: ["id"], transaction }))));
  },
  async "errors"(see) {
    const { sequelize, Author } = await library();
    await refused(see, () => Author.create({ name: "Ada" }));
    await Author.create({ name: "Ada" }).catch((error) => see(error.name, error.fields));
    await refused(see, () => sequelize.query("select * from nowhere"));
  },
  async "raw queries"(see) {
    const { sequelize } = await library();
    see(await sequelize.query('select name from "Authors" where name in (:names) order by id', { replacements: { names: ["Ada", "Grace"] }, type: "SELECT" }), await sequelize.query('select $1::int + 1 as n', { bind: [4], type: "SELECT" }));
  },
  async "types of PostgreSQL"(see) {
    const sequelize = connect();
    const Thing = sequelize.define("Thing", { tags: DataTypes.ARRAY(DataTypes.TEXT), code: { type: DataTypes.UUID, defaultValue: DataTypes.UUIDV4 }, bytes: DataTypes.BLOB, big: DataTypes.BIGINT, real: DataTypes.DOUBLE, time: DataTypes.TIME }, { timestamps: false });
    await sequelize.sync();
    await Thing.create({ tags: ["a", "b"], code: "12345678-1234-4678-8234-567812345678", bytes: Buffer.from([1, 2]), big: "9007199254740993", real: 1.5, time: "01:02:03" });
    see(plain(await Thing.findAll({ where: { tags: { [Op.contains]: ["a"] } } })));
  },
  async "json"(see) {
    const sequelize = connect();
    const Thing = sequelize.define("Thing", { body: DataTypes.JSONB }, { timestamps: false });
    await sequelize.sync();
    await Thing.create({ body: { a: { b: 1 } } });
    see(plain(await Thing.findAll({ where: { "body.a.b": 1 } })));
  },
  async "enum"(see) {
    const sequelize = connect();
    const Thing = sequelize.define("Thing", { mood: DataTypes.ENUM("sad", "ok") }, { timestamps: false });
    await sequelize.sync();
    await Thing.create({ mood: "ok" });
    see(plain(await Thing.findAll()));
  },
  async "query interface"(see) {
    const sequelize = connect();
    const table = sequelize.getQueryInterface();
    await table.createTable("things", { id: { type: DataTypes.INTEGER, primaryKey: true, autoIncrement: true }, name: DataTypes.STRING(20) });
    await table.addColumn("things", "size", { type: DataTypes.INTEGER, defaultValue: 3 });
    await table.changeColumn("things", "name", { type: DataTypes.STRING(30), allowNull: false });
    await table.renameColumn("things", "size", "length");
    await table.addIndex("things", ["name"], { unique: true, name: "things_name" });
    await table.addConstraint("things", { type: "check", fields: ["length"], name: "long", where: { length: { [Op.gt]: 1 } } });
    see(await table.describeTable("things"));
    see((await table.showIndex("things")).map((index) => [index.name, index.unique, index.primary, index.fields.map((field) => field.attribute)]));
    await table.removeColumn("things", "length");
    await table.dropTable("things");
    see(await table.tableExists("things"));
  },
});
