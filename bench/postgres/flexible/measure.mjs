// SPDX-License-Identifier: Apache-2.0
//
// Measures rate-limiter-flexible as the Go programs beside it are: callers that
// each take again as soon as they are answered. Reads a task as JSON from its
// argument and prints how long takes took: pairs of nanoseconds and how many.

import { once } from "node:events";
import { performance } from "node:perf_hooks";
import pg from "pg";
import { RateLimiterPostgres, RateLimiterRes } from "rate-limiter-flexible";

const task = JSON.parse(process.argv[2]);
const fillers = 16;

const pool = new pg.Pool({ connectionString: task.url, max: task.connections });

// The library makes a logged table only: an unlogged one must be there before.
if (!task.logged) {
  await pool.query('CREATE UNLOGGED TABLE "bucket" (key varchar(255) PRIMARY KEY, points integer NOT NULL DEFAULT 0, expire bigint)');
}
const limiter = await new Promise((resolve, reject) => {
  const made = new RateLimiterPostgres(
    { storeClient: pool, tableName: "bucket", tableCreated: !task.logged, points: task.capacity, duration: task.window },
    (err) => (err ? reject(err) : setImmediate(() => resolve(made))), // it may call before it has set tableCreated
  );
});

const name = (n) => "user:" + String(n).padStart(11, "0");
const known = Array.from({ length: task.keys }, (_, n) => name(n));
const random = Array.from({ length: task.calls }, () => known[Math.floor(Math.random() * task.keys)]);

async function take(key, wanted) {
  let allowed = true;
  try {
    await limiter.consume(key, 1);
  } catch (denial) {
    if (!(denial instanceof RateLimiterRes)) throw denial;
    allowed = false;
  }
  if (allowed !== wanted) throw new Error(`take ${key}: wrong answer: allowed = ${allowed}`);
}

// Classes are 1/16 of a power of two wide; an entry is its upper edge.
function edge(ns) {
  if (ns < 16) return ns;
  const width = 2 ** (Math.floor(Math.log2(ns)) - 4);
  return (Math.floor(ns / width) + 1) * width - 1;
}

// Resolves to how long each take took, and how long it was until the last of them
// was answered.
async function together(ms) {
  const counts = new Map();
  const began = performance.now();
  const caller = async (at) => {
    for (let last = began; last - began < ms; at = (at + 1) % random.length) {
      await take(random[at], task.wanted);
      const now = performance.now();
      const entry = edge(Math.floor((now - last) * 1e6));
      counts.set(entry, (counts.get(entry) ?? 0) + 1);
      last = now;
    }
  };
  await Promise.all(Array.from({ length: task.callers }, (_, g) => caller(Math.floor((g * random.length) / task.callers))));
  return { elapsed: Math.floor((performance.now() - began) * 1e6), latencies: [...counts] };
}

await Promise.all(
  Array.from({ length: fillers }, async (_, g) => {
    for (let i = g; i < known.length; i += fillers) await take(known[i], true);
  }),
);
await take(known[0], task.wanted);
await pool.query("VACUUM ANALYZE");
await together(task.warmUp);
const result = await together(task.time);
await pool.end();
if (!process.stdout.write(JSON.stringify(result))) await once(process.stdout, "drain");
