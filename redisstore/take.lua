-- SPDX-License-Identifier: Apache-2.0
--
-- Everything a store does to buckets: any number of operations in one atomic
-- call. The arithmetic is that of package bucket, in doubles: every number is an
-- integer below 2^53, or only compared.
--
-- KEYS     the keys of the batch: first those that hold states, which are read
--          together, then logs, then leases and takes that are remembered.
-- ARGV[1]  numbers, packed, called a below: the time in microseconds or -1, the
--          numbers of states and of logs among the keys, how plain the operations
--          are, the number of limits and eight numbers for each, then the
--          operations. See program.go, which writes them.
-- ARGV[2]  and on: names of leases, which operations refer to.
--
-- Returns the time and an answer for each operation, separated by spaces. An
-- answer shows the buckets as they were before: who asked works out the rest.
-- Where keys hold what is no bucket, it returns ! and their numbers.
--
-- A state is
--   spent/unit@asof          a bucket: spent/unit thousandths of a token are
--                            missing at asof, microseconds since 1970
--   cur+prev~length@start    a sliding window
--   log sum=… first=…        a sliding log, and a line for each entry
-- A bucket that has no state is full. Nothing is written before all of it is
-- known to be right, so that an error means that nothing was done.

local call, floor, format, match, max, min = redis.call, math.floor, string.format, string.match, math.max, math.min
local a = cmsgpack.unpack(ARGV[1])
local now, virtual = a[1], a[1] >= 0
if not virtual then
	local t = call('TIME')
	now = t[1] * 1000000 + t[2]
end

-- States live until they are full, and one to two seconds: expiry counts from an
-- instant before the one that is read here, and to delete a state and make it anew
-- costs more than to keep it a little longer. Under virtual time,
-- which no expiry can follow, they live so long.
local LIFE = 3600

-- The two most common cases by themselves, as that is faster than to set up the
-- rest. First, one cost of one token bucket that has no queue, count times:
-- capacity, n, p, what may be owed, cost and count follow. The answer is the state
-- as it was, and how often the cost was admitted. Where the state is none of the
-- limit's it is ?, and nothing has been done.
if a[4] == 2 then
	local C, n, p, cost, admitted, s, at = a[5], a[6], a[7], a[9], a[10], 0, now
	local v = call('GET', KEYS[1])
	if v then
		local u, t
		s, u, t = match(v, '^(%d+)/(%d+)@(%d+)$')
		if not s or u + 0 ~= p then return '?' end
		s, t = s + 0, t + 0
		if t > now then
			at = t
		else
			local back = (now - t) * n
			if back >= s then s = 0 else s = s - back end
		end
		if s > (C + a[8]) * p then return '?' end
	end
	local fit = floor((C * p - s) / (cost * p))
	if fit < admitted then admitted = fit > 0 and fit or 0 end
	if admitted > 0 then
		s = s + admitted * cost * p
		local life = virtual and LIFE or floor((floor((s - 1) / n) + at - now) / 1000000) + 2
		call('SETEX', KEYS[1], life == 2 and '2' or format('%d', life), format('%d/%d@%d', s, p, at))
	end
	return format('%d %s %d', now, v or '-', admitted)
end

local reads, logs = a[2], a[3]
local raw = {}
if reads == 1 then
	raw[1] = call('GET', KEYS[1])
elseif reads > 0 then
	raw = call('MGET', unpack(KEYS, 1, reads))
end

-- Second, takes of several such buckets, all of it or nothing; those of one bucket
-- at one cost are one operation, with a count. The answer is all states as they
-- were, and how often each operation was admitted, or ?.
if a[4] == 1 then
	local S, A, L, W, counts = {}, {}, {}, {}, {}
	local i, size, o = 6 + 8 * a[5], #a, 0
	while i <= size do
		local charges, admitted = a[i], a[i+1]
		i = i + 2
		for j = i, i + 3 * charges - 3, 3 do
			local k, l = a[j], 8 * a[j+1] - 2
			local n, p, s = a[l+2], a[l+3], S[k]
			if not s then
				local v, at = raw[k], now
				s = 0
				if v then
					local u, t
					s, u, t = match(v, '^(%d+)/(%d+)@(%d+)$')
					if not s or u + 0 ~= p then return '?' end
					s, t = s + 0, t + 0
					if t > now then
						at = t
					else
						local back = (now - t) * n
						if back >= s then s = 0 else s = s - back end
					end
				end
				S[k], A[k], L[k] = s, at, l
			elseif L[k] ~= l and (a[L[k]+2] ~= n or a[L[k]+3] ~= p) then
				return '?'
			end
			if s > (a[l+1] + a[l+4]) * p then return '?' end
			local fit = floor((a[l+1] * p - s) / (a[j+2] * p))
			if fit < admitted then admitted = fit > 0 and fit or 0 end
		end
		if admitted > 0 then
			for j = i, i + 3 * charges - 3, 3 do
				local k = a[j]
				S[k], W[k] = S[k] + admitted * a[j+2] * a[8*a[j+1]+1], true
			end
		end
		i, o = i + 3 * charges, o + 1
		counts[o] = admitted == 1 and '1' or admitted == 0 and '0' or format('%d', admitted)
	end
	local this, unit, tail = format('%d', now), 0, ''
	for k = 1, reads do
		if W[k] then
			local s, at, l = S[k], A[k], L[k]
			local n, p = a[l+2], a[l+3]
			if p ~= unit then unit, tail = p, format('/%d@%s', p, this) end
			local value = at == now and format('%d%s', s, tail) or format('%d/%d@%d', s, p, at)
			local life = virtual and LIFE or floor((floor((s - 1) / n) + at - now) / 1000000) + 2
			call('SETEX', KEYS[k], life == 2 and '2' or format('%d', life), value)
		end
		if not raw[k] then raw[k] = '-' end
	end
	return this .. ' ' .. table.concat(raw, ' ') .. ' ' .. table.concat(counts, ' ')
end

-- States by the place of their key, from when an operation first needs them:
-- numbers, and which of them are to be written.
local spent, asof, unit, prev, ttl = {}, {}, {}, {}, {}

-- The limit that is looked at: see pick.
local kind, C, n, p, debt, start, first, queued

local function pick(l)
	local i = 8 * l - 2
	kind, C, n, p, debt, start, first, queued = a[i], a[i+1], a[i+2], a[i+3], a[i+4], a[i+5], a[i+6] == 1, a[i+7] == 1
end

local function up(x, y)
	if x == 0 then return 0 end
	return floor((x - 1) / y) + 1
end

-- parse returns spent, asof, unit, prev of a state's text, and nothing for other
-- texts.
local function parse(v)
	local s, u, t = match(v, '^(%d+)/(%d+)@(%-?%d+)$')
	if s then return s + 0, t + 0, u + 0, 0 end
	local c, w, l
	c, w, l, t = match(v, '^(%d+)%+(%d+)~(%d+)@(%-?%d+)$')
	if c then return c + w, t + 0, -l, w + 0 end
	s, t = match(v, '^log sum=(%d+) .*\n(%d+) %d+\n$')
	if s then return s + 0, t + 0, 1, 0 end
end

local broken = {}
for k = 1, reads do
	local v = raw[k]
	if v then
		spent[k], asof[k], unit[k], prev[k] = parse(v)
		if not spent[k] then broken[#broken + 1] = k end
	else
		spent[k], asof[k], unit[k], prev[k] = 0, 0, 0, 0
	end
end

local function text(s, t, u, w)
	if u < 0 then
		return format('%d+%d~%d@%d', s - w, w, -u, t)
	end
	return format('%d/%d@%d', s, u, t)
end

-- show is the state of k as it is now, for an answer.
local function show(k)
	local v = raw[k]
	if ttl[k] or v and string.byte(v) == 108 then return text(spent[k], asof[k], unit[k], prev[k]) end
	return v or '-'
end

-- missing returns what is missing in thousandths, for a limit of another unit.
local function missing(s, u)
	return min(up(s, max(u, 1)), C)
end

-- The three below return what is missing now and the instant that is true of.

local function refilled(k)
	local s, at = spent[k], max(now, asof[k])
	if s == 0 then return 0, at end
	if unit[k] ~= p then s = missing(s, unit[k]) * p end
	local elapsed = at - asof[k]
	if elapsed >= up(s, n) then return 0, at end
	return min(s - elapsed * n, (C + debt) * p), at
end

local function beginning(t)
	return t - (t - start) % p
end

local function stepped(k)
	local s, from, at = spent[k], asof[k], max(now, asof[k])
	if unit[k] ~= 1 then s = missing(s, unit[k]) end
	if first then
		if s == 0 then return 0, at end
		local t = at - (at - from) % p
		if floor((t - from) / p) >= up(s, n) then return 0, at end
		at = t
	else
		at = beginning(at)
		if s == 0 then return 0, at end
		from = beginning(from)
		if from < asof[k] then from = from + p end
		at = max(at, from)
		if floor((at - from) / p) >= up(s, n) then return 0, at end
	end
	return min(s - floor((at - from) / p) * n, C + debt), at
end

-- slid also returns what was spent in the window before.
local function slid(k)
	local cur, w, t = spent[k] - prev[k], prev[k], asof[k]
	if unit[k] ~= -p then
		cur, w, t = missing(spent[k], unit[k]), 0, t - t % p
	end
	local at = max(now, asof[k])
	local passed = floor((at - t) / p)
	if passed == 1 then return cur, t + p, cur end
	if passed > 1 then return 0, at - at % p, 0 end
	return cur + w, t, w
end

local function look(k)
	if kind == 0 then return refilled(k) end
	if kind == 1 then return stepped(k) end
	return slid(k)
end

-- life is how long a bucket is not full, in microseconds.
local function life(s, at, w)
	if kind == 0 then return up(s, n) + at - now end
	if kind == 1 then return up(s, n) * p + at - now end
	if s > w then return 2 * p + at - now end
	return p + at - now
end

-- seconds is for how long Redis keeps what is needed for us microseconds: 285 years
-- at most.
local function seconds(us)
	return virtual and LIFE or format('%d', floor((max(min(us, 9007199254740991), 1) - 1) / 1000000) + 2)
end

-- put sets the state of k, to be written at the end.
local function put(k, s, at, w)
	local u = kind == 0 and p or kind == 1 and 1 or -p
	spent[k], asof[k], unit[k], prev[k] = s, at, u, w or 0
	ttl[k] = s == 0 and max(at - now, 0) or life(s, at, w or 0)
end

-- into is how far a window has come, in 4096ths: two digits to the base of 64,
-- as the product may be more than a double holds.
local function into(elapsed)
	local high = floor(elapsed * 64 / p)
	return high * 64 + floor((elapsed * 64 - high * p) * 64 / p)
end

-- admits says whether cost may be spent of a bucket that misses s at the instant
-- at. A wait of -2 is forced, -1 is a plain take, and others are microseconds.
local function admits(s, at, w, cost, wait)
	if kind == 2 then
		local cur = s - w
		if wait == -2 and cost <= C + debt then return cur + cost <= C + debt end
		local room = C - cost - cur
		return cost <= C and room >= 0 and
			(w <= room or max(4096 - floor(room * 4096 / w), 0) <= into(max(now - at, 0)))
	end
	if C - cost < -debt then return false end
	if wait == -1 then wait = queued and -2 or 0 end
	if kind == 1 then
		local room = C - cost
		if wait == -2 then
			return room + debt >= 0 and s <= room + debt
		end
		if room < 0 then return false end
		if s <= room then return true end
		if wait > 0 and s > room + debt then return false end
		return up(s - room, n) * p <= wait - min(at - now, 0)
	end
	local loan = debt * p
	if wait >= 0 and wait < up(loan, n) then loan = wait * n end
	local room = (C - cost) * p + loan
	return room >= 0 and s <= room
end

-- remaining is what a bucket holds, in thousandths.
local function remaining(s, at, w)
	if kind == 0 then return max(C - up(s, p), 0) end
	if kind == 1 then return max(C - s, 0) end
	return max(C - (s - w) - up(w * (4096 - into(max(now - at, 0))), 4096), 0)
end

local function scale()
	return kind == 0 and p or 1
end

-- Sliding logs. They are changed where they are, as they may be long: a line of
-- fixed length for each entry behind a header that counts those which have left.

local HEAD, LINE, CHUNK = 39, 31, 64
local HEADER, ENTRY = 'log sum=%013d first=%010d\n', '%016d %013d\n'

for k = reads + 1, reads + logs do
	local v = call('GETRANGE', KEYS[k], 0, HEAD - 1)
	local isLog = match(v, '^log sum=%d+ first=%d+\n$') and match(call('GETRANGE', KEYS[k], -LINE - 1, -1), '^\n%d+ %d+\n$') and
		(call('STRLEN', KEYS[k]) - HEAD) % LINE == 0
	if v ~= '' and not isLog and not parse(v) then broken[#broken + 1] = k end
end
if #broken > 0 then return '!' .. table.concat(broken, ' ') end
-- What is no text is an error: here, before anything is written.
for k = reads + logs + 1, #KEYS do call('STRLEN', KEYS[k]) end

-- openlog returns the log under a key: what it adds up to, its first and last
-- line (counted from 0), the newest instant and what it was made from, if that
-- was the state of another algorithm.
local function openlog(key)
	local head = call('GETRANGE', key, 0, HEAD - 1)
	if head == '' then return {key = key, sum = 0, first = 0, lines = 0, newest = 0} end
	local sum, gone = match(head, '^log sum=(%d+) first=(%d+)\n$')
	if sum then
		local g = {key = key, sum = sum + 0, first = gone + 0, lines = (call('STRLEN', key) - HEAD) / LINE}
		g.newest = string.sub(call('GETRANGE', key, -LINE, -1), 1, 16) + 0
		return g
	end
	local s, t, u = parse(call('GET', key))
	local m = missing(s, u)
	local g = {key = key, sum = m, first = 0, lines = 0, newest = t, fresh = true}
	if m > 0 then g.lines, g.fresh = 1, {t, m} else g.newest = 0 end
	return g
end

-- entry returns the instant and the cost of a line.
local function entry(g, i)
	if g.fresh then return g.fresh[1], g.fresh[2] end
	if not g.chunk or i < g.from or i >= g.from + CHUNK then
		g.from, g.chunk = i, call('GETRANGE', g.key, HEAD + i * LINE, HEAD + (i + CHUNK) * LINE - 1)
	end
	local t, c = match(g.chunk, '(%d+) (%d+)', (i - g.from) * LINE + 1)
	return t + 0, c + 0
end

-- expired returns the first line that is in the window which ends at t, and what
-- the lines before add up to.
local function expired(g, t)
	local i, gone = g.first, 0
	while i < g.lines do
		local at, c = entry(g, i)
		if at > t - p then break end
		i, gone = i + 1, gone + c
	end
	return i, gone
end

-- waitlog returns how long until a log admits cost: -1 is never.
local function waitlog(g, cost, wait)
	if cost > C + debt or wait ~= -2 and cost > C then return -1 end
	local room = C - cost
	if wait == -2 then room = room + debt end
	local i, gone = expired(g, max(now, g.newest))
	local left = g.sum - gone
	if left <= room then return 0 end
	local at, c
	while left > room do
		at, c = entry(g, i)
		i, left = i + 1, left - c
	end
	return at + p - now
end

-- looklog returns what a log counts, and how far its instant lies ahead.
local function looklog(g)
	local at = max(now, g.newest)
	local _, gone = expired(g, at)
	if g.sum > gone then return g.sum - gone, g.newest - now end
	return 0, at - now
end

local function expire(g, us)
	call('EXPIRE', g.key, seconds(us))
end

-- savelog writes a log whose lines before g.first have left it; g.add is a new
-- line, and g.set replaces the newest.
local function savelog(g)
	local rest = ''
	if g.add then rest = format(ENTRY, g.add[1], g.add[2]) end
	if g.fresh then
		if g.fresh ~= true and g.first == 0 then rest = format(ENTRY, g.fresh[1], g.fresh[2]) .. rest end
		call('SET', g.key, format(HEADER, g.sum, 0) .. rest)
	elseif g.lines == 0 then
		call('SET', g.key, format(HEADER, g.sum, 0) .. rest)
	elseif g.first >= 16 and g.first * 2 >= g.lines then -- shed what has left
		call('SET', g.key, format(HEADER, g.sum, 0) .. call('GETRANGE', g.key, HEAD + g.first * LINE, -1) .. rest)
	else
		call('SETRANGE', g.key, 0, format(HEADER, g.sum, g.first))
		if rest ~= '' then call('APPEND', g.key, rest) end
	end
end

-- emptied forgets a log in which nothing is left.
local function emptied(key, at)
	if virtual then call('SETEX', key, LIFE, format('0/1@%d', at)) else call('DEL', key) end
end

-- spendlog records cost.
local function spendlog(g, cost)
	local at = max(now, g.newest)
	local i, gone = expired(g, at)
	g.first, g.sum = i, g.sum - gone + cost
	local count = g.lines - i
	if cost == 0 then
		if count == 0 then return emptied(g.key, at) end
		savelog(g)
		return expire(g, g.newest + p - now)
	end
	local t, c
	if count > 0 then t, c = entry(g, g.lines - 1) end
	if count > 0 and (count >= 10000 or t == at) then
		if g.fresh then
			g.fresh = {at, c + cost}
			savelog(g)
		else
			call('SETRANGE', g.key, HEAD + (g.lines - 1) * LINE, format(ENTRY, at, c + cost))
			savelog(g)
		end
	else
		g.add = {at, cost}
		savelog(g)
	end
	expire(g, at + p - now)
end

-- refundlog gives back the oldest entries.
local function refundlog(key, amount)
	local g = openlog(key)
	if g.sum == 0 then return end
	local at = max(now, g.newest)
	local i, gone = expired(g, at)
	local sum = g.sum - gone
	if amount >= sum then
		return emptied(key, at)
	end
	local left, t, c = amount, 0, 0
	while left > 0 do
		t, c = entry(g, i)
		if c > left then break end
		i, left = i + 1, left - c
	end
	g.first, g.sum = i, sum - amount
	if left > 0 then
		if g.fresh then
			g.fresh = {t, c - left}
		else
			call('SETRANGE', key, HEAD + i * LINE, format(ENTRY, t, c - left))
		end
	end
	savelog(g)
	expire(g, g.newest + p - now)
end

-- Leases. What is lent of a bucket is missing from it, however long ago it was
-- taken: package internal/lease says why and what has to be done. A lease is a
-- line "holder amount spent seq until".

-- settle brings the state of k to now, and returns what is lent and the leases.
local function settle(k, lease)
	local list, sum, at = {}, 0, max(now, asof[k])
	for holder, amount, used, seq, till in string.gmatch(call('GET', KEYS[lease]) or '', '(%S+) (%d+) (%d+) (%d+) (%d+)\n') do
		list[#list + 1] = {holder, amount + 0, used + 0, seq + 0, till + 0}
		sum = sum + amount
	end
	if not list[1] then return 0, list end
	table.sort(list, function(x, y) return x[5] < y[5] end)
	local this, ended = now, 0
	local function come(t)
		now = t
		local s, from = look(k)
		unit[k] = kind == 0 and p or 1
		spent[k], asof[k] = max(s, min(sum, C) * scale()), from
	end
	while list[1] and list[1][5] <= at do
		come(list[1][5])
		sum, ended = sum - list[1][2], ended + 1
		table.remove(list, 1)
	end
	come(at)
	now, list.ended = this, ended > 0
	return sum, list
end

-- lend writes the leases of k, and has the state live long enough: refill goes on
-- from the end of the last lease with what was lent missing.
local function lend(k, lease, sum, list)
	local lines, last = {}, 0
	for j = 1, #list do
		lines[j] = format('%s %d %d %d %d\n', unpack(list[j]))
		last = max(last, list[j][5])
	end
	if #list == 0 then return call('DEL', KEYS[lease]) end
	local us = last - now + up(sum * scale(), n) * (kind == 1 and p or 1)
	ttl[k] = max(ttl[k], us)
	call('SETEX', KEYS[lease], seconds(us), table.concat(lines))
end

-- ends tells when what is lent will be missing no longer.
local function ends(list)
	local parts = {}
	for j = 1, #list do parts[j] = format('%d,%d', list[j][5], list[j][2]) end
	return table.concat(parts, ';')
end

-- floored returns the state of k with what is lent missing from it, and its text.
local function floored(k, lease)
	local sum, list = 0, nil
	if lease > 0 then sum, list = settle(k, lease) end
	local s, at, w = look(k)
	if list and (list[1] or list.ended) then
		return max(s, min(sum, C) * scale()), at, w, text(spent[k], asof[k], unit[k], 0), sum, list
	end
	return s, at, w, show(k)
end

local function refund(k, amount, lease)
	if spent[k] == 0 then return end
	local s, at, w, _, sum, list = floored(k, lease)
	if kind == 2 then
		local cur = s - w
		local back = min(amount, cur)
		w = w - min(amount - back, w)
		return put(k, cur - back + w, at, w)
	end
	if amount >= up(s, scale()) then s = 0 else s = s - amount * scale() end
	put(k, max(s, min(sum or 0, C) * scale()), at)
	if list then lend(k, lease, sum, list) end
end

local answers = {}
local function answer(v) answers[#answers + 1] = v end

local i = 6 + 8 * a[5]
local size = #a

-- One cost of one bucket, count times: how often it was admitted.
local function simple(k, l, cost, count)
	pick(l)
	local before, admitted = nil, 0
	local s, at, w = look(k)
	before = show(k)
	if kind == 0 and not queued and cost > 0 then
		local room = C * p - s
		if room > 0 then admitted = min(count, floor(room / (cost * p))) end
		s = s + admitted * cost * p
	else
		while admitted < count and admits(s, at, w, cost, -1) do
			s, admitted = s + cost * scale(), admitted + 1
		end
	end
	if admitted > 0 then put(k, s, at, w) end
	answers[#answers + 1] = admitted
	answers[#answers + 1] = before
end

-- A take of several buckets, by ID, of a part, with a wait, or only looked at.
local function take()
	local flags, wait, id, count = a[i+1], a[i+2], a[i+3], a[i+4]
	local dry, part = flags % 2 == 1, flags >= 2
	local c = i + 5
	i = c + 4 * count
	local memory = i -- for how long, the name of the attempt, and those of the limits
	if id > 0 then
		i = i + 2 + count
		local v = call('GET', KEYS[id])
		local owners, rest, at = match(v or '', '^(%S*) (1 (%d+) .*)$')
		if at and now - at < a[memory] then
			if a[memory + 1] > 0 then -- whose it is too: see giveback
				owners = #owners < 256 and owners .. ',' .. ARGV[a[memory + 1]] or '*'
				call('SET', KEYS[id], owners .. ' ' .. rest, 'KEEPTTL')
			end
			return answer(rest)
		end
	end
	local S, T, W, B, G, X, list, cost = {}, {}, {}, {}, {}, {}, {}, {}
	local there, ok = 9007199254740991, true
	for j = 1, count do
		local k = a[c]
		pick(a[c+1])
		cost[j] = a[c+2]
		if kind == 3 then
			G[j] = openlog(KEYS[k])
			there = min(there, max(C - looklog(G[j]), 0))
		else
			S[j], T[j], W[j], B[j], X[j], list[j] = floored(k, a[c+3])
			if part then there = min(there, remaining(S[j], T[j], W[j] or 0)) end
		end
		c = c + 4
	end
	c = c - 4 * count
	for j = 1, count do
		pick(a[c+1])
		if part and cost[j] > there then cost[j] = min(cost[j], max(there - there % 1000, 1000)) end
		if G[j] then
			local retry = waitlog(G[j], cost[j], wait)
			B[j], ok = retry, ok and retry == 0
		else
			ok = ok and admits(S[j], T[j], W[j] or 0, cost[j], wait)
		end
		c = c + 4
	end
	c = c - 4 * count
	local out = {ok and '1' or '0', format('%d', now)}
	for j = 1, count do
		local k = a[c]
		pick(a[c+1])
		if G[j] then
			local retry = B[j]
			if ok and not dry then
				spendlog(G[j], cost[j])
				local g = G[j]
				local behind = max(now, g.newest)
				if cost[j] == 0 and g.sum > 0 then behind = g.newest end
				B[j] = format('L%d,%d,%d', g.sum, behind - now, 0)
			else
				local s, behind = looklog(G[j])
				B[j] = format('L%d,%d,%d', s, behind, retry)
			end
		elseif ok and not dry then
			put(k, S[j] + cost[j] * scale(), T[j], W[j])
			if list[j] then lend(k, a[c+3], X[j], list[j]) end
			if id > 0 then B[j] = show(k) end
		end
		if part or id > 0 then B[j] = format('%d:', cost[j]) .. B[j] else B[j] = ':' .. B[j] end
		if ok and id > 0 then B[j] = B[j] .. ':' .. ARGV[a[memory + 1 + j]] end
		if not ok and list[j] and list[j][1] then B[j] = B[j] .. '::' .. ends(list[j]) end
		out[#out + 1] = B[j]
		c = c + 4
	end
	local v = table.concat(out, ' ')
	if id > 0 and ok then
		local attempt = a[memory + 1] > 0 and ARGV[a[memory + 1]] or '-'
		call('SETEX', KEYS[id], virtual and LIFE or floor(a[memory] / 1000000), attempt .. ' ' .. v)
	end
	return answer(v)
end

-- disown takes an attempt from the owners of a take that is remembered, and
-- reports whether it was the last. A take with many owners stays for good.
local function disown(key, attempt)
	local owners, rest = match(call('GET', key) or '', '^(%S*)( .*)$')
	owners = ',' .. (owners or '') .. ','
	local from, to = string.find(owners, ',' .. attempt .. ',', 1, true)
	if not from then return false end
	owners = string.sub(owners, 1, from) .. string.sub(owners, to + 1)
	if owners == ',' then return call('DEL', key) end
	call('SET', key, string.sub(owners, 2, -2) .. rest, 'KEEPTTL')
	return false
end

-- Costs are given back. Where there is an ID, only once: those of a take that is
-- remembered when none of the attempts that made it wants it any more, and it is
-- forgotten; those of another, and that they have been is remembered for some
-- time.
local function giveback()
	local id, attempt, horizon, count = a[i+1], a[i+2], a[i+3], a[i+4]
	i = i + 5
	local mine = true
	if attempt > 0 then
		mine = disown(KEYS[id], ARGV[attempt])
	elseif id > 0 then
		mine = not call('GET', KEYS[id])
		if mine then call('SETEX', KEYS[id], floor(horizon / 1000000), 'undone') end
	end
	if not mine then
		i = i + 4 * count
		return
	end
	for _ = 1, count do
		local k = a[i]
		pick(a[i+1])
		if a[i+2] > 0 then
			if kind == 3 then refundlog(KEYS[k], a[i+2]) else refund(k, a[i+2], a[i+3]) end
		end
		i = i + 4
	end
end

-- A holder says what it has spent and what it keeps of its lease, gives back the
-- rest and takes more.
local function borrow()
	local k, lease = a[i+1], a[i+3]
	local holder, seq, used, keep, want, life = ARGV[a[i+4]], a[i+5], a[i+6], a[i+7], a[i+8], a[i+9]
	pick(a[i+2])
	i = i + 10
	local from = max(now, asof[k])
	local s, at, _, _, sum, list = floored(k, lease)
	sum, list = sum or 0, list or {}
	local back, kept = 0, 0
	for j = 1, #list do
		local e = list[j]
		if e[1] == holder then
			if e[4] >= seq then return answer('-1 0 ' .. show(k)) end
			back, kept = max(e[2] - (used - e[3]) - keep, 0), 1
			sum = sum - e[2]
			table.remove(list, j)
			break
		end
	end
	if kept == 0 then keep = 0 end
	if back >= up(s, scale()) then s = 0 else s = s - back * scale() end
	s = max(s, min(sum + keep, C) * scale())
	local granted = min(want, remaining(s, at, 0))
	if keep + granted > 0 then
		list[#list + 1] = {holder, keep + granted, used, seq, from + life}
		sum = sum + keep + granted
	end
	put(k, s + granted * scale(), at)
	lend(k, lease, sum, list)
	answer(format('%d %d %s', granted, kept, show(k)))
end

local operations = {[2] = take, [3] = giveback, [4] = borrow}
while i <= size do
	if a[i] == 1 then
		simple(a[i+1], a[i+2], a[i+3], a[i+4])
		i = i + 5
	else
		operations[a[i]]()
	end
end

for k, us in pairs(ttl) do
	if virtual then
		call('SETEX', KEYS[k], LIFE, text(spent[k], asof[k], unit[k], prev[k]))
	elseif us > 0 then
		call('SETEX', KEYS[k], seconds(us), text(spent[k], asof[k], unit[k], prev[k]))
	elseif raw[k] then
		call('DEL', KEYS[k])
	end
end
return format('%d ', now) .. table.concat(answers, ' ')
