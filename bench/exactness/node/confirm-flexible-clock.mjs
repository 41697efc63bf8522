// SPDX-License-Identifier: Apache-2.0
//
// Repeats a finding about rate-limiter-flexible with PostgreSQL: it compares the end of a window with the clock of the
// process. A process whose clock is 30 s ahead starts a new window. After its end, the other process still denies.
// node confirm-flexible-clock.mjs POSTGRES-URL

import pg from "pg";
import { RateLimiterPostgres } from "rate-limiter-flexible";

const pool = new pg.Pool({ connectionString: process.argv[2] });
const tableName = `confirm_${Date.now()}`;
const limiter = await new Promise((resolve, reject) => {
  const made = new RateLimiterPostgres({ storeClient: pool, points: 10, duration: 1, tableName }, (err) => (err ? reject(err) : setImmediate(() => resolve(made))));
});

const now = Date.now;
let admitted = 0;
for (const ahead of [0, 30_000]) {
  Date.now = () => now() + ahead;
  for (let i = 0; i < 15; i++)
    await limiter.consume("k").then(
      () => admitted++,
      () => {},
    );
}
Date.now = now;
console.log(`two clocks, 30 s apart: ${admitted} of 30 admitted at once, with 10 points per second`);
await new Promise((resolve) => setTimeout(resolve, 1500));
const denied = await limiter.consume("k").then(
  () => false,
  () => true,
);
console.log(`1.5 s later, the clock that is behind: denied=${denied}`);
await pool.query(`DROP TABLE ${tableName}`);
await pool.end();
