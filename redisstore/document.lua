-- SPDX-License-Identifier: Apache-2.0
--
-- Writes a document, unless its revision has changed.
--
-- KEYS[1]  the document: its revision, a line feed, and the data
-- ARGV[1]  the revision to replace, 0 for a new document
-- ARGV[2]  the new data
--
-- Returns the new revision, or 0. A revision is the time in microseconds. A document that Redis has lost thus
-- gets a different revision when it is created again.

local old = redis.call('GET', KEYS[1])
local revision = old and string.match(old, '^(%d+)\n') or '0'
if revision ~= ARGV[1] then
    return '0'
end
local t = redis.call('TIME')
local new = string.format('%.0f', math.max(t[1] * 1000000 + t[2], revision + 1))
redis.call('SET', KEYS[1], new .. '\n' .. ARGV[2])
return new
