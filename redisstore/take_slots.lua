-- SPDX-License-Identifier: Apache-2.0
--
-- Part 8 of the script, after take_lease.lua: the slots of concurrency limits. A key of slots is a sorted set of the IDs of
-- the slots, with their ends as scores. It expires with its last slot. A slot has ended if its score is at most the time.
-- Calls that admit remove such slots, and other calls only skip them.

local slots = {from = reads + logs, to = reads + logs + a[6]}

for k = slots.from + 1, slots.to do
	call('ZCARD', KEYS[k]) -- raises an error for other types, before the first write
end

function slots.own(k) return k > slots.from and k <= slots.to end

function slots.holds(k, id)
	local till = call('ZSCORE', KEYS[k], id)
	return till and till + 0 > now
end

function slots.held(k) return call('ZCOUNT', KEYS[k], format('(%d', now), '+inf') end

-- ends returns the end of the i-th slot in the order of their ends, counted from 0.
function slots.ends(k, i)
	return call('ZRANGEBYSCORE', KEYS[k], format('(%d', now), '+inf', 'WITHSCORES', 'LIMIT', i, 1)[2] + 0
end

-- last returns the last end of any slot.
function slots.last(k) return call('ZRANGE', KEYS[k], -1, -1, 'WITHSCORES')[2] + 0 end

-- wait returns the wait for a slot under the picked limit, or for a renewal. It is -1 for a renewal of a slot that is not held.
function slots.wait(k, id, cost, renew)
	if renew then return slots.holds(k, id) and 0 or -1 end
	local most = C / 1000
	if cost == 0 then return 0 end
	local held = slots.held(k)
	if held < most or slots.holds(k, id) then return 0 end
	return slots.ends(k, held - most) - now
end

-- put gives id a slot with a new lease of the picked limit.
function slots.put(k, id)
	call('ZREMRANGEBYSCORE', KEYS[k], '-inf', format('%d', now))
	call('ZADD', KEYS[k], format('%d', now + p), id)
	call('EXPIRE', KEYS[k], seconds(slots.last(k) - now))
end

-- note adds a slot to the list of a hold.
function slots.note(list, k, id) list[#list+1], list[#list+2] = KEYS[k], id end

-- show returns the number of held slots, the times until the first and the last of them end, and the wait.
function slots.show(k, wait)
	local held = slots.held(k)
	if held == 0 then return format('S0,0,0,%d', wait) end
	return format('S%d,%d,%d,%d', held, slots.ends(k, 0) - now, slots.last(k) - now, wait)
end
