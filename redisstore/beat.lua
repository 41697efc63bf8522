-- SPDX-License-Identifier: Apache-2.0
--
-- Registers a node and returns the number of nodes.
--
-- KEYS[1]  a sorted set of nodes, scored by their last heartbeat in milliseconds
-- ARGV[1]  the node
-- ARGV[2]  lifetime of a heartbeat, in milliseconds

local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return redis.call('ZCARD', KEYS[1])
