// SPDX-License-Identifier: Apache-2.0
//
// Runs one limiter for Node.js for the comparison of exactness. Each is configured as its documentation recommends.
// package wire of the directory beside this one describes the input and the output.

import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { createInterface } from "node:readline";
import express from "express";
import { rateLimit } from "express-rate-limit";
import { Redis } from "ioredis";
import { RateLimiter } from "limiter";
import pg from "pg";
import { RedisStore } from "rate-limit-redis";
import { RateLimiterMemory, RateLimiterPostgres, RateLimiterRedis, RateLimiterRes } from "rate-limiter-flexible";

const setup = JSON.parse(process.argv[2]);
const noRetry = -1;
const milliseconds = 1e6; // in nanoseconds
const period = (limit) => limit.Period / milliseconds;

function dial() {
  const client = setup.Sentinels
    ? new Redis({ name: setup.Master, sentinels: setup.Sentinels.map((a) => ({ host: a.split(":")[0], port: Number(a.split(":")[1]) })) })
    : new Redis(`redis://${setup.Redis}`);
  client.on("error", () => {}); // each call reports its own
  return client;
}

const shared = Boolean(setup.Redis || setup.Sentinels);

// Asks limiters of one key in turn, as a chain of middleware does.
const chain = (take) => async (keys) => {
  for (const [i, key] of keys.entries()) {
    if (!key) continue;
    const answer = await take(i, key);
    if (!answer.allowed) return answer;
  }
  return { allowed: true, retry: noRetry };
};

async function flexible() {
  const client = shared ? dial() : undefined;
  const pool = setup.Postgres ? new pg.Pool({ connectionString: setup.Postgres }) : undefined;
  pool?.on("error", () => {});
  const make = (limit, i) => {
    const options = { points: limit.Capacity, duration: period(limit) / 1000, keyPrefix: `limit${i}` };
    if (client) return new RateLimiterRedis({ ...options, storeClient: client });
    if (!pool) return new RateLimiterMemory(options);
    return new Promise((resolve, reject) => {
      const made = new RateLimiterPostgres({ ...options, storeClient: pool, tableName: "limits" }, (err) =>
        err ? reject(err) : setImmediate(() => resolve(made)),
      );
    });
  };
  const limiters = [];
  // One after the other: both would create the table.
  for (const [i, limit] of setup.Limits.entries()) limiters.push(await make(limit, i));
  const change = async (limits) => {
    for (const [i, limit] of limits.entries()) {
      limiters[i].points = limit.Capacity;
      limiters[i].duration = period(limit) / 1000;
    }
  };
  const take = (i, key) =>
    limiters[i].consume(key).then(
      () => ({ allowed: true, retry: noRetry }),
      (denial) => {
        if (denial instanceof RateLimiterRes) return { allowed: false, retry: denial.msBeforeNext * milliseconds };
        throw denial;
      },
    );
  return { take: chain(take), change };
}

// express serves the middleware, and this process calls it.
async function expressRateLimit() {
  const client = shared ? dial() : undefined;
  const app = express();
  const change = (limits) => limits.map((limit, i) => {
    const store = client && new RedisStore({ prefix: `limit${i}:`, sendCommand: (command, ...args) => client.call(command, ...args) });
    return rateLimit({ windowMs: period(limit), limit: limit.Capacity, keyGenerator: (req) => req.get("x-key"), store });
  });
  let limiters = change(setup.Limits);
  app.get("/:limit", (req, res, next) => limiters[req.params.limit](req, res, next), (_, res) => res.end());
  app.use((err, _req, res, _next) => res.status(500).end(String(err)));
  const server = createServer(app).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  const take = (i, key) =>
    new Promise((resolve, reject) => {
      const call = request({ port, host: "127.0.0.1", path: `/${i}`, headers: { "x-key": key } }, (res) => {
        let body = "";
        res.on("data", (data) => (body += data));
        res.on("end", () => {
          if (res.statusCode === 200) resolve({ allowed: true, retry: noRetry });
          else if (res.statusCode === 429) {
            const after = res.headers["retry-after"];
            resolve({ allowed: false, retry: after === undefined ? noRetry : Number(after) * 1000 * milliseconds });
          } else reject(new Error(body));
        });
      });
      call.on("error", reject);
      call.end();
    });
  // The option limit may be a function, but windowMs may not. A new limiter starts with empty counts, except with a shared
  // store.
  return { take: chain(take), change: client && (async (limits) => void (limiters = change(limits))) };
}

function limiter() {
  const limiters = new Map();
  const take = async (i, key) => {
    const name = `${i}:${key}`;
    if (!limiters.has(name)) limiters.set(name, new RateLimiter({ tokensPerInterval: setup.Limits[i].Capacity, interval: period(setup.Limits[i]) }));
    const one = limiters.get(name);
    const allowed = one.tryRemoveTokens(1);
    return { allowed, retry: allowed ? noRetry : Math.ceil(one.getWaitTime(1) * milliseconds) };
  };
  // By public fields: the documentation names no other way.
  const change = async (limits) => {
    setup.Limits = limits;
    for (const [name, { tokenBucket }] of limiters) {
      const limit = limits[name.split(":")[0]];
      Object.assign(tokenBucket, { bucketSize: limit.Capacity, tokensPerInterval: limit.Capacity, interval: period(limit) });
    }
  };
  return { take: chain(take), change };
}

const makers = {
  "rate-limiter-flexible": flexible,
  "express-rate-limit": expressRateLimit,
  limiter,
};

const write = (response) => process.stdout.write(`${JSON.stringify(response)}\n`);
process.on("unhandledRejection", (err) => console.error("worker:", err));

const { take, change } = await makers[setup.Contender]();
const manifest = new URL(`node_modules/${setup.Contender}/package.json`, import.meta.url);
write({ ID: 0, Version: JSON.parse(readFileSync(manifest)).version });

for await (const line of createInterface({ input: process.stdin })) {
  const { ID, Keys, Limits } = JSON.parse(line);
  const work = Limits ? (change ?? (() => Promise.reject(new Error("unsupported"))))(Limits) : take(Keys);
  Promise.resolve(work).then(
    (answer) => write({ ID, Allowed: answer?.allowed ?? false, Retry: answer?.retry ?? noRetry }),
    (err) => write({ ID, Error: String(err?.message || err) }),
  );
}
process.exit(0);
