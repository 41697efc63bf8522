-- SPDX-License-Identifier: Apache-2.0
--
-- Writes a document, unless it has another revision by now.
--
-- KEYS[1]  the document: its revision, a line feed, and what is in it
-- ARGV[1]  the revision that is to be replaced, 0 where there is none
-- ARGV[2]  what is to be in it
--
-- Returns the new revision, or 0. It is the time in microseconds, so that a document
-- that Redis has lost and that is made again has another one.

local old = redis.call('GET', KEYS[1])
local revision = old and string.match(old, '^(%d+)\n') or '0'
if revision ~= ARGV[1] then
    return '0'
end
local t = redis.call('TIME')
local new = string.format('%.0f', math.max(t[1] * 1000000 + t[2], revision + 1))
redis.call('SET', KEYS[1], new .. '\n' .. ARGV[2])
return new
