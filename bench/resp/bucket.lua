-- SPDX-License-Identifier: Apache-2.0
--
-- A conventional token bucket. ARGV: the capacity, and the microseconds per token.
-- Returns 1 and the remaining tokens, or 0 and the microseconds until the next token.

local capacity, every = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local bucket = redis.call('HMGET', KEYS[1], 'left', 'at')
local left = capacity
if bucket[1] then
  left = math.min(capacity, bucket[1] + (now - bucket[2]) / every)
end
if left < 1 then
  return {0, math.ceil((1 - left) * every)}
end
redis.call('HSET', KEYS[1], 'left', left - 1, 'at', now)
redis.call('PEXPIRE', KEYS[1], math.ceil((capacity - left + 1) * every / 1000))
return {1, math.floor(left - 1)}
