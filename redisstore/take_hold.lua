-- SPDX-License-Identifier: Apache-2.0
--
-- Part 10 of the script, after take_penalty.lua: holds. The record of a hold is the version and a packed list:
--   1  0 while it is open, and 1 after its settlement
--   2  the expiry
--   3  1 if an expired hold is refunded
--   4  the settled amounts, one per unit
--   5  the answer to the take
--   6  the parts: key, limit, lease, cost, kept, fixed, asked, instant of the take, spent after it, due, member, history, unit
--   7  the end of the record
--   8  the keys and IDs of the slots that the take took, or nothing without slots. They are no parts: only undoing the hold
--      releases them
-- due is the sorted set of the bucket's refunds, and member its entry. Both are empty if nothing is refunded at the expiry.
-- history is the ID of the account's history, or empty if the part cost nothing. A reset deletes the row and its histories.
-- The index is a sorted set of the open holds by their expiry.

local MAXHOLDS, ALLHOLDS, WEEK = 10000, 262144, 691200

-- needSince asks for the windows of a calendar limit since a take at the instant t. A bucket is full after more windows than
-- the call can carry.
local function needSince(name, t)
	if string.byte(name) ~= 99 then return end -- c
	pick(name)
	if windowof(t) == 0 and windowof(now) <= 1000 then needwindow(name, t) end
end

-- The expired holds to refund, by the position of their row: the key of the list, and entries with their expiries.
local expired = {}

-- findDue finds the expired holds of a row.
local function findDue(k)
	local x, due, list = rows[k], 0, ''
	while x do
		local h = x.h
		if h and h.d > 0 and (due == 0 or h.d < due) then due, list = h.d, h.z end
		x = x.after
	end
	if due == 0 or now < due then return end
	local ends = call('ZRANGEBYSCORE', list, '-inf', format('%d', now), 'WITHSCORES')
	for j = 1, #ends, 2 do
		local name, t = match(ends[j], '^%S+ (%S+) %d+ %d+ (%-?%d+)')
		needSince(name, t + 0)
	end
	expired[k] = {list, ends}
end

-- refundDue refunds the expired holds of a row, each at its expiry. It ignores holds of an earlier history.
local function refundDue(k)
	local this, list, ends = now, unpack(expired[k])
	for j = 1, #ends, 2 do
		local name, back, cost, t, missed, id = match(ends[j], '^%S+ (%S+) (%d+) (%d+) (%-?%d+) (%d+) (%S+)$')
		now = ends[j+1] + 0
		local x = own(k, name)
		pick(name)
		if x and x.h and x.h.i == id then
			if calendar then turn(x) end
			cancel(x, back + 0, 0, cost + 0, t + 0, missed + 0)
			closeHold(x, t + 0)
		end
	end
	now = this
	call('ZREMRANGEBYSCORE', list, '-inf', format('%d', now))
	local first = call('ZRANGE', list, 0, 0, 'WITHSCORES')
	local x = rows[k]
	while x do
		pick(x.l)
		if calendar then turn(x) end
		if x.h then x.h.d = first[2] and first[2] + 0 or 0 end
		x = x.after
	end
	dirty[k] = true
end

-- attach returns the position of a bucket's key that the caller did not pass, and reads its row. It returns nothing if
-- the key does not hold a row.
local attached
local function attach(key)
	if not attached then
		attached = {}
		for k = 1, reads + logs do attached[KEYS[k]] = k end
	end
	local k = attached[key]
	if k then return k end
	local v = redis.pcall('GET', key)
	if type(v) == 'table' then return end
	k = #KEYS + 1
	rows[k] = v and read(v) or false
	if v and not rows[k] then return end
	KEYS[k], attached[key] = key, k
	return k
end

-- loadHold returns a record, or nothing if there is none or if it has reached its end.
local function loadHold(key)
	local v = call('GET', key)
	if not v or sub(v, 1, 2) ~= '1:' then return end
	local r = cmsgpack.unpack(sub(v, 3))
	if now < r[7] then return r end
end

-- Find all missing windows before anything is written.
for k = slots.to + 1, slots.to + a[7] do
	local r = loadHold(KEYS[k])
	for _, part in ipairs(r and r[6] or {}) do
		attach(part[1])
		needSince(part[2], part[8])
	end
end
for k = 1, #KEYS do
	if rows[k] then findDue(k) end
end
checkwindows()
if #missing > 0 then return format('~%d ', now) .. table.concat(missing, ' ') end
for k in pairs(expired) do refundDue(k) end

local function saveHold(key, r)
	call('SETEX', key, seconds(r[7] - now), '1:' .. cmsgpack.pack(r))
end

-- readHold reads the hold of an operation from a, and returns it with the position after it.
local function readHold(i, count)
	local h = {key = KEYS[a[i]], index = ARGV[a[i+1]], hash = ARGV[a[i+2]], ttl = a[i+3], refund = a[i+4], horizon = a[i+5], history = ARGV[a[i+6]], terms = {}, slots = {}}
	i = i + 7
	for j = 1, count do
		h.terms[j] = {a[i], a[i+1], a[i+2], a[i+3], a[i+4] > 0 and ARGV[a[i+4]] or ''}
		i = i + 5
	end
	return h, i
end

-- recallHold returns the answer to a repeated hold, or the reason to refuse a new one, or nothing. The verdict of a repeated
-- answer is 2, or 3 if one of its slots has ended. c is the position of the charges.
local function recallHold(h, c)
	local r = loadHold(h.key)
	if r then
		if r[5] == '' then return 'H ended' end
		local verdict, parts, taken, part, slot = '2', r[6], r[8] or {}, 1, 1
		for j = c, c + 4 * #h.terms - 4, 4 do
			local key = KEYS[a[j]]
			if slots.own(a[j]) then
				if taken[slot] ~= key then return 'H keys' end
				if a[j+2] > 0 and not slots.holds(a[j], ARGV[a[j+3]]) then verdict = '3' end
				slot = slot + 2
			else
				if not parts[part] or parts[part][1] ~= key then return 'H keys' end
				part = part + 1
			end
		end
		if parts[part] or taken[slot] then return 'H keys' end
		return verdict .. sub(r[5], 2)
	end
	call('ZREMRANGEBYSCORE', h.index, '-inf', format('%d', now))
	if call('ZCARD', h.index) >= ALLHOLDS then return 'H full' end
	for j = 1, #h.terms do
		local name = ARGV[1 + a[c + 4 * j - 3]]
		local x = own(a[c + 4 * j - 4], name)
		pick(name)
		if x and held(x) >= MAXHOLDS then return 'H full' end
	end
end

-- target returns the new cost of a part after a settlement with these amounts: see store.Terms.
local function target(part, actual)
	local cost, asked, amount = part[4], part[7], actual[min(part[13] + 1, #actual)]
	if part[5] == 1 or amount == -1 then return cost end
	local total = min(part[6] + amount, MOST)
	if asked == 0 or asked == cost then return total end
	local q, r, whole, rest = 0, 0, floor(cost / asked), cost % asked
	for bit = 52, 0, -1 do -- total · cost / asked, rounded up
		q, r = 2 * q, 2 * r
		if floor(total / 2 ^ bit) % 2 == 1 then q, r = q + whole, r + rest end
		while r >= asked do q, r = q + 1, r - asked end
		if q > MOST then return MOST end
	end
	return min(q + (r > 0 and 1 or 0), MOST)
end

-- addPart records the charge of an account, which has the position k, as part j of a hold.
local function addPart(h, parts, j, k, x, cost, lease)
	local terms, till, due, member = h.terms[j], now + h.ttl, '', ''
	local part = {KEYS[k], x.l, lease > 0 and KEYS[lease] or '', cost, terms[1], terms[2], terms[3], x.t, x.g and x.g.sum or x.s, '', '', '', terms[4]}
	if cost > 0 then
		if h.refund == 1 then due = terms[5] end
		pick(x.l)
		if x.g then whole(x.g) end
		part[12] = openHold(x, x.t, part[9], till, due, h.history)
		if h.refund == 1 then
			member = format('%s %s %d %d %d %d %s', h.hash, x.l, max(cost - target(part, {0}), 0), cost, x.t, part[9], part[12])
			call('ZADD', due, format('%d', till), member)
			call('EXPIRE', due, WEEK)
		end
		part[10], part[11] = due, member
	end
	parts[j] = part
end

local function addHold(h, said, parts)
	saveHold(h.key, {0, now + h.ttl, h.refund, {0}, said, parts, now + h.ttl + h.horizon, h.slots[1] and h.slots})
	call('ZADD', h.index, format('%d', now + h.ttl), h.key)
	call('EXPIRE', h.index, WEEK)
end

local function stateOf(r)
	if r[1] == 1 then return 2 end
	return now >= r[2] and 3 or 1
end

local function status(r, settled)
	return format('%d,%d,%d,%s', stateOf(r), r[2], settled, table.concat(r[4], ','))
end

-- attachParts returns the positions of a hold's rows, or nothing.
local function attachParts(r)
	local ks = {}
	for j, part in ipairs(r[6]) do
		ks[j] = attach(part[1])
		if not ks[j] then return end
	end
	return ks
end

-- settleHold settles the hold of an operation at position i. An amount of -2 undoes the hold, releases its slots and removes
-- it; -3 also keeps a record that rejects a late hold. It returns the answer and the next position.
local function settleHold(i)
	local key, index, horizon, actual = KEYS[a[i+1]], ARGV[a[i+2]], a[i+3], {unpack(a, i + 5, i + 4 + a[i+4])}
	local undoes, drops = actual[1] < -1, actual[1] == -3
	i = i + 5 + #actual
	local r = loadHold(key)
	if not r then
		if drops then saveHold(key, {1, now, 0, {0}, '', {}, now + horizon}) end
		return '0,0,0,0', i
	end
	local ks = attachParts(r)
	if not ks then return 'broken', i end
	if stateOf(r) ~= 1 then return status(r, 0), i end
	local costs, lists, locks = {}, {}, {}
	for j, part in ipairs(r[6]) do
		local name = part[2]
		costs[j] = undoes and 0 or target(part, actual)
		locks[j] = 0
		if part[3] ~= '' then
			KEYS[#KEYS+1] = part[3]
			locks[j] = #KEYS
			lists[j] = loans(ks[j], locks[j])
		end
		if costs[j] > part[4] then
			local x, more = open(ks[j], name), costs[j] - part[4]
			local s, at, w = look(x)
			if x.g and waitlog(x.g, more, -2) ~= 0 or not x.g and not admits(s, at, w, more, -2) then return status(r, 0), i end
		end
	end
	for j, part in ipairs(r[6]) do
		local k, name, cost, t = ks[j], part[2], part[4], part[8]
		local over = cost == 0 or part[11] ~= '' and call('ZREM', part[10], part[11]) == 0
		if costs[j] > cost then
			local x, more = open(k, name), costs[j] - cost
			if x.g then
				spendlog(x, more)
			else
				local s, at, w = look(x)
				note(x, s, s + more * unit, more, -2)
				become(x, s + more * unit, at, w)
			end
			write(k, x, more)
		end
		local x = own(k, name)
		pick(name)
		if x and x.h and x.h.i == part[12] and not over then
			if costs[j] < cost then cancel(x, cost - costs[j], min(leased(lists[j], name), C) * unit, cost, t, part[9]) end
			closeHold(x, t)
		end
		if rows[k] then dirty[k] = true end
		if lists[j] then writeLeases(k, locks[j], lists[j]) end
	end
	for j = 1, undoes and r[8] and #r[8] or 0, 2 do
		redis.pcall('ZREM', r[8][j], r[8][j+1])
	end
	call('ZREM', index, key)
	r[1], r[4], r[7] = 1, undoes and {0} or actual, max(r[2], now) + horizon
	if undoes and not drops then
		call('DEL', key)
	else
		if drops then r[5] = '' end
		saveHold(key, r)
	end
	return status(r, 1), i
end

-- renewHold renews the hold of an operation at position i. It returns the answer and the next position.
local function renewHold(i)
	local key, index, horizon, ttl = KEYS[a[i+1]], ARGV[a[i+2]], a[i+3], a[i+4]
	i = i + 5
	local r = loadHold(key)
	if not r then return '0,0,0,0', i end
	local ks = attachParts(r)
	if not ks then return 'broken', i end
	if stateOf(r) ~= 1 then return status(r, 0), i end
	r[2], r[7] = now + ttl, now + ttl + horizon
	for j, part in ipairs(r[6]) do
		local over = part[4] == 0
		if part[11] ~= '' then
			over = not call('ZSCORE', part[10], part[11])
			if not over then
				call('ZADD', part[10], format('%d', r[2]), part[11])
				call('EXPIRE', part[10], WEEK)
			end
		end
		local x = own(ks[j], part[2])
		pick(part[2])
		if x and not over and remember(x, (look(x))) and x.h.i == part[12] then
			extend(x, part[8], r[2], part[10])
			dirty[ks[j]] = true
		end
	end
	saveHold(key, r)
	call('ZADD', index, format('%d', r[2]), key)
	call('EXPIRE', index, WEEK)
	return status(r, 0), i
end
