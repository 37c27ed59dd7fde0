// Prisma Client over its adapter for node-postgres. Its schema engine is no part of the packages, so the tables are made by
// statements, as its migrations would make them but without foreign keys.

import { PrismaPg } from "@prisma/adapter-pg";
import { Prisma, PrismaClient } from "./prisma-client/index.js";
import { keep, refused, serve, url } from "./harness.mjs";

const TABLES = [
  `create table "Author" ("id" serial not null, "name" varchar(40) not null, "born" date, constraint "Author_pkey" primary key ("id"))`,
  `create unique index "Author_name_key" on "Author" ("name")`,
  `create table "Book" ("id" serial not null, "title" text not null, "price" decimal(10,2) not null default 0, "made" timestamptz(6) not null default current_timestamp, "tags" text[], "pages" bigint, "cover" bytea, "authorId" integer, constraint "Book_pkey" primary key ("id"))`,
];

async function library() {
  const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: url, max: 3 }), log: [] });
  keep(() => prisma.$disconnect());
  for (const statement of TABLES) await prisma.$executeRawUnsafe(statement);
  for (const [at, name] of ["Ada", "Grace", "Edsger"].entries()) {
    await prisma.author.create({ data: { name, born: new Date(Date.UTC(1900 + at, 0, 2)), books: { create: [...Array(at).keys()].map((n) => ({ title: `${name} ${n}`, price: n + 0.5, tags: ["a", `t${n}`], made: new Date(0), pages: 2n ** 40n, cover: Buffer.from([0, 255]) })) } } });
  }
  return prisma;
}

await serve({
  async "finds"(see) {
    const prisma = await library();
    see(await prisma.author.findMany({ where: { OR: [{ name: { contains: "ADA", mode: "insensitive" } }, { born: { gt: new Date("1901-06-01") } }] }, orderBy: { id: "asc" } }));
    see(await prisma.book.findFirst({ where: { price: { gte: 1 } }, orderBy: [{ price: "desc" }] }), await prisma.author.findUnique({ where: { name: "Nobody" } }), await prisma.book.findMany({ where: { tags: { has: "t1" } }, select: { title: true }, skip: 0, take: 2 }));
  },
  async "relations"(see) {
    const prisma = await library();
    see(await prisma.author.findMany({ include: { books: { select: { title: true }, orderBy: { id: "asc" } }, _count: { select: { books: true } } }, orderBy: { id: "asc" } }));
    see(await prisma.book.findMany({ where: { author: { is: { name: { startsWith: "E" } } } }, select: { title: true, author: { select: { name: true } } }, orderBy: { id: "asc" } }), await prisma.author.count({ where: { books: { some: { price: { gt: 1 } } } } }));
  },
  async "aggregates"(see) {
    const prisma = await library();
    see(await prisma.book.aggregate({ _sum: { price: true }, _avg: { price: true }, _max: { title: true }, _count: true }), await prisma.book.groupBy({ by: ["authorId"], _count: { _all: true }, having: { price: { _max: { gt: 0 } } }, orderBy: { authorId: "asc" } }));
  },
  async "changes"(see) {
    const prisma = await library();
    see(await prisma.book.update({ where: { id: 1 }, data: { price: { increment: 2 }, tags: { push: "new" } }, select: { price: true, tags: true } }), await prisma.book.updateMany({ where: { price: { lt: 2 } }, data: { title: "cheap" } }), await prisma.book.deleteMany({ where: { title: "cheap" } }));
    see(await prisma.author.delete({ where: { name: "Ada" } }));
  },
  async "many rows"(see) {
    const prisma = await library();
    see(await prisma.author.createMany({ data: [...Array(300).keys()].map((n) => ({ name: `n${n}` })), skipDuplicates: true }), (await prisma.author.createManyAndReturn({ data: [{ name: "x" }, { name: "y" }], select: { name: true } })).length);
  },
  async "upsert"(see) {
    const prisma = await library();
    see(await prisma.author.upsert({ where: { name: "Ada" }, update: { born: null }, create: { name: "Ada" } }), (await prisma.author.upsert({ where: { name: "New" }, update: {}, create: { name: "New" } })).name);
  },
  async "transactions"(see) {
    const prisma = await library();
    await refused(see, () => prisma.$transaction([prisma.book.deleteMany(), prisma.author.create({ data: { name: "Ada" } })]));
    await prisma.$transaction(async (inner) => { await inner.author.create({ data: { name: "in" } }); }, { isolationLevel: "RepeatableRead" });
    see(await prisma.author.count(), await prisma.book.count());
  },
  async "serializable transaction"(see) {
    const prisma = await library();
    see(await prisma.$transaction((inner) => inner.author.count(), { isolationLevel: "Serializable" }));
  },
  async "raw queries"(see) {
    const prisma = await library();
    see(await prisma.$queryRaw`select id, name, born from "Author" where id in (${Prisma.join([1, 2])}) order by id`, await prisma.$executeRaw`update "Book" set price = ${5} where id = ${1}`);
  },
  async "errors"(see) {
    const prisma = await library();
    await prisma.author.create({ data: { name: "Ada" } }).catch((error) => see(error.name, error.code, error.meta));
    await prisma.author.update({ where: { id: 99 }, data: { name: "x" } }).catch((error) => see(error.name, error.code));
    await prisma.$queryRaw`select * from nowhere`.catch((error) => see(error.name, error.code));
  },
  async "json"(see) {
    const prisma = await library();
    await prisma.$executeRawUnsafe(`create table "Document" ("id" uuid not null primary key, "body" jsonb not null)`);
    await prisma.document.create({ data: { body: { a: { b: [1, null] } } } });
    see((await prisma.document.findMany({ where: { body: { path: ["a", "b"], array_contains: [1] } } })).map((one) => one.body));
  },
});
