// SPDX-License-Identifier: Apache-2.0
//
// Repeats a finding about rate-limiter-flexible with Redis: msBeforeNext can be a millisecond short. Redis reports whole
// milliseconds, and a key lives until its last millisecond has ended. node confirm-flexible-retry.mjs REDIS-URL

import { Redis } from "ioredis";
import { RateLimiterRedis, RateLimiterRes } from "rate-limiter-flexible";

const client = new Redis(process.argv[2] ?? "redis://127.0.0.1:6379");
const limiter = new RateLimiterRedis({ storeClient: client, points: 1, duration: 1, keyPrefix: `confirm${Date.now()}` });
const consume = () =>
  limiter.consume("k").then(
    () => undefined,
    (denial) => {
      if (!(denial instanceof RateLimiterRes)) throw denial;
      return denial.msBeforeNext;
    },
  );

let denied = 0;
const rounds = 20;
for (let i = 0; i < rounds; i++) {
  let wait;
  do wait = await consume();
  while (wait === undefined);
  const until = performance.now() + wait;
  await new Promise((resolve) => setTimeout(resolve, wait - 5));
  while (performance.now() < until); // setTimeout is up to a millisecond late
  if ((await consume()) !== undefined) denied++;
}
console.log(`${denied} of ${rounds} were denied after the wait that they were told`);
client.disconnect();
