// What the programs of checks for Node share: a check is a function that gets `see`, which notes what the tool showed.
// tool_checks.py says what the program and its runner tell each other.

import readline from "node:readline";
import { inspect } from "node:util";

export const address = {
  host: "127.0.0.1",
  port: Number(process.env.PGPORT),
  user: process.env.PGUSER,
  password: process.env.PGPASSWORD,
  database: process.env.PGDATABASE,
};
export const url = `postgres://${address.user}:${address.password}@127.0.0.1:${address.port}/${address.database}`;

const SECONDS = 20;
const opened = [];

// Ends what was opened, by this function, after the check, also after one that failed.
export function keep(end) {
  opened.push(end);
}

// SQLSTATE and message of a driver's error, also of one that a mapper has wrapped.
export function state(error) {
  const inner = [error, error.original, error.driverError, error.cause, error.nativeError].find((one) => one?.code && /^[0-9A-Z]{5}$/.test(one.code)) ?? error;
  return `${inner.code ?? inner.name} ${String(inner.message).split("\n")[0]}`;
}

// Notes the SQLSTATE and the message with which `work` must fail.
export async function refused(see, work) {
  try {
    await work();
  } catch (error) {
    see("refused", state(error));
    return;
  }
  throw new Error("no error");
}

function text(value) {
  return typeof value === "string" ? value : inspect(value, { depth: 8, breakLength: Infinity, sorted: false, maxArrayLength: 200 });
}

// Runs the checks that the runner names: each name in `checks` has the function after it.
export async function serve(checks) {
  process.on("unhandledRejection", () => {});
  process.on("uncaughtException", () => {});
  console.log("::" + JSON.stringify(Object.keys(checks)));
  for await (const name of readline.createInterface({ input: process.stdin })) {
    const seen = [];
    const answer = { seen };
    let timer;
    try {
      const late = new Promise((_, reject) => (timer = setTimeout(() => reject(new Error(`no end after ${SECONDS} s`)), SECONDS * 1000)));
      await Promise.race([checks[name]((...values) => seen.push(values.map(text).join(" "))), late]);
    } catch (error) {
      answer.error = state(error);
    }
    clearTimeout(timer);
    for (const end of opened.splice(0)) {
      try {
        await Promise.race([end(), new Promise((resolve) => setTimeout(resolve, 2000))]);
      } catch {}
    }
    console.log("\n::" + JSON.stringify(answer));
  }
  process.exit(0);
}
