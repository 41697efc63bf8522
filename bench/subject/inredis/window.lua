-- SPDX-License-Identifier: Apache-2.0
--
-- A fixed window: a counter, and beside it when its window ends. KEYS: the
-- counter. ARGV: what to count, the end of a window that would begin now, and
-- now, in milliseconds. Returns the count and the end of its window.

local counter = KEYS[1]
local marker = counter .. ':ex'
local ends = tonumber(redis.call('GET', marker))
if not ends or ends < tonumber(ARGV[3]) then
  ends = tonumber(ARGV[2])
  local forgotten = ends + 1000
  redis.call('SET', counter, 0, 'PXAT', forgotten)
  redis.call('SET', marker, ends, 'PXAT', forgotten)
end
return {redis.call('INCRBY', counter, tonumber(ARGV[1])), ends}
