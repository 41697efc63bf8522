-- SPDX-License-Identifier: Apache-2.0
--
-- Token buckets as they are usually written. KEYS: buckets, each a hash of the
-- tokens left and of when that was. ARGV: the capacity, and the microseconds that
-- a token takes to refill. Every bucket gives one token, or none of them does.
-- Returns 1 and the fewest tokens left, or 0 and the microseconds to wait.

local capacity, every = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local left, fewest = {}, capacity

for i, key in ipairs(KEYS) do
  local bucket = redis.call('HMGET', key, 'left', 'at')
  left[i] = capacity
  if bucket[1] then
    left[i] = math.min(capacity, bucket[1] + (now - bucket[2]) / every)
  end
  fewest = math.min(fewest, left[i])
end
if fewest < 1 then
  return {0, math.ceil((1 - fewest) * every)}
end
for i, key in ipairs(KEYS) do
  redis.call('HSET', key, 'left', left[i] - 1, 'at', now)
  redis.call('PEXPIRE', key, math.ceil((capacity - left[i] + 1) * every / 1000))
end
return {1, math.floor(fewest - 1)}
