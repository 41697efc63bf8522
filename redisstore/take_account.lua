-- SPDX-License-Identifier: Apache-2.0
--
-- Part 4 of the script, after take_calendar.lua: the arithmetic of an account.

-- Limits. A limit's text is capacity+n/p: n thousandths are added every p microseconds. A prefix selects the
-- algorithm. None is a token bucket, w a sliding window, and l a sliding log. With h it is a number of slots with a lease
-- of p. The others are stepped buckets, and differ in the start of their intervals. With s it is at @ after the epoch,
-- with k it depends on the key, and with f it is the first take. With c it is in the calendar after @. d and q are the
-- most that may be reserved, q with a queue. By default it is all that the arithmetic allows.
local KINDS = {[''] = 0, s = 1, k = 1, f = 1, c = 1, w = 2, l = 3, h = 4}
local known = {}

-- The selected limit. A unit is a thousandth in its accounts.
local kind, C, n, p, debt, start, first, queued, unit
local picked

-- pick selects the limit with this text, and returns false if the text is invalid.
local function pick(name)
	if name == picked then return true end
	local l = known[name]
	if not l then
		local letter, c, tokens, per, how, owed, from = match(name, '^(%l?)(%d+)%+(%d+)/(%d+)([dq]?)(%d*)@?(%S*)$')
		local k = KINDS[letter or '?']
		if not k or (how == '') ~= (owed == '') then return false end
		if letter == 'c' then
			from = ''
		elseif from ~= '' and not tonumber(from) then
			return false
		end
		c, tokens, per = c + 0, max(tokens + 0, 1), max(per + 0, 1) -- an empty limit has 0
		local u = k == 0 and per or 1
		owed = how ~= '' and owed + 0 or (k < 2 and floor(9007199254740991 / u) or 2199023255551) - c
		if letter == 'c' and how == '' then owed = min(owed, 1000 * tokens - c) end
		l = {k, c, tokens, per, owed, from == '' and 0 or from + 0, letter == 'f', how == 'q', u, letter == 'c' and (windows[name] or {})}
		known[name] = l
	end
	kind, C, n, p, debt, start, first, queued, unit, calendar = l[1], l[2], l[3], l[4], l[5], l[6], l[7], l[8], l[9], l[10]
	picked = name
	return true
end

local function up(x, y)
	if x == 0 then return 0 end
	return floor((x - 1) / y) + 1
end

-- seconds returns the expiry in seconds for data that is needed for us microseconds, 285 years at most.
local function seconds(us)
	return virtual and LIFE or format('%d', floor((max(min(us, 9007199254740991), 1) - 1) / 1000000) + 2)
end

-- Sliding logs. A log that is the only account of its row can be long, so it is changed in place. It has a header
-- that counts the expired lines, and a line of fixed length per entry. It then has g.key, and g.chunk is a part of it.
-- In a row of several accounts, g.chunk is the whole log, which is written with its row.

local LINE, CHUNK = 31, 64
local HEADER, ENTRY = 'log sum=%013d first=%010d lines=%010d %s\n', '%016d %013d\n'
local HEAD = '^log sum=(%d+) first=(%d+) lines=(%d+) (%S+)\n()'

-- entry returns the instant and the cost of a line, counted from 0.
local function entry(g, i)
	if g.key and not (g.chunk and i >= g.from and i < g.from + CHUNK) then
		g.from = i
		g.chunk = call('GETRANGE', g.key, g.head + i * LINE, g.head + (i + CHUNK) * LINE - 1)
	end
	local t, c = match(g.chunk, '^(%d+) (%d+)', (i - g.from) * LINE + 1)
	return t + 0, c + 0
end

-- set replaces a line, or appends one.
local function set(g, i, t, c)
	local line = format(ENTRY, t, c)
	if g.key then
		call('SETRANGE', g.key, g.head + i * LINE, line)
		g.chunk = nil
	else
		g.chunk = sub(g.chunk, 1, i * LINE) .. line .. sub(g.chunk, (i + 1) * LINE + 1)
	end
	g.lines = max(g.lines, i + 1)
	if i == g.lines - 1 then g.newest = t end
end

-- whole loads a log that will be written with its row.
local function whole(g)
	if g.key then
		g.chunk, g.from = call('GETRANGE', g.key, g.head, -1), 0
		g.key = nil
	end
end

-- empty removes all entries.
local function empty(g)
	g.key, g.chunk, g.from, g.sum, g.first, g.lines, g.newest = nil, '', 0, 0, 0, 0, 0
end

-- expired returns the first line in the window that ends at t, and the sum of the lines before it.
local function expired(g, t)
	local i, gone = g.first, 0
	while i < g.lines do
		local at, c = entry(g, i)
		if at > t - p then break end
		i, gone = i + 1, gone + c
	end
	return i, gone
end

-- waitlog returns the wait until a log admits cost: -1 is never.
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

-- looklog returns the sum of a log's window, and the instant for which it is valid.
local function looklog(g)
	local at = max(now, g.newest)
	local _, gone = expired(g, at)
	if g.sum > gone then return g.sum - gone, g.newest end
	return 0, at
end

-- Accounts. x.l is the text of the limit, x.s the spent tokens at x.t, and x.w the part of x.s that belongs to
-- the previous window. A log has x.g instead. x.v caches the state's text.

local function become(x, s, t, w)
	x.s, x.t, x.w, x.v, x.a, x.b = s, t, w, nil, nil, nil
end

-- show returns the state of an account that is not a log, for an answer.
local function show(x)
	if x.v then return x.v end
	if x.w then return format('%d+%d@%d', x.s - x.w, x.w, x.t) end
	return format('%d@%d', x.s, x.t)
end

-- spell returns an account as text in its row.
local function spell(x)
	local g = x.g
	if g and g.lines > g.first then
		return format(HEADER, g.sum, 0, g.lines - g.first, x.l) .. sub(g.chunk, g.first * LINE + 1)
	end
	return show(x) .. ' ' .. x.l
end

-- The next three return the spent tokens now, and the instant for which they are valid.

local function refilled(x)
	local s, at = x.s, max(now, x.t)
	if s == 0 then return 0, at end
	local elapsed = at - x.t
	if elapsed >= up(s, n) then return 0, at end
	return min(s - elapsed * n, (C + debt) * p), at
end

local function beginning(t)
	if calendar then return calendar[windowof(t)] or t end
	return t - (t - start) % p
end

local function stepped(x)
	local s, from, at = x.s, x.t, max(now, x.t)
	if calendar then return min(x.a or s, C + debt), x.b or from end -- see turn
	if first then
		if s == 0 then return 0, at end
		local t = at - (at - from) % p
		if floor((t - from) / p) >= up(s, n) then return 0, at end
		at = t
	else
		at = beginning(at)
		if s == 0 then return 0, at end
		from = beginning(from)
		if from < x.t then from = from + p end
		at = max(at, from)
		if floor((at - from) / p) >= up(s, n) then return 0, at end
	end
	return min(s - floor((at - from) / p) * n, C + debt), at
end

-- slid also returns the tokens spent in the previous window.
local function slid(x)
	local cur, w, t = x.s - x.w, x.w, x.t
	local at = max(now, t)
	local passed = floor((at - t) / p)
	if passed == 1 then return cur, t + p, cur end
	if passed > 1 then return 0, at - at % p, 0 end
	return cur + w, t, w
end

local function look(x)
	if kind == 0 then return refilled(x) end
	if kind == 1 then return stepped(x) end
	if kind == 2 then return slid(x) end
	return looklog(x.g)
end

-- life returns the time until an account is full, in microseconds.
local function life(x)
	local s, at, w = look(x)
	if s == 0 then return x.t - now end
	if kind == 0 then return up(s, n) + at - now end
	if calendar then return arrival(up(s, n), at, p) - now end
	if kind == 1 then return up(s, n) * p + at - now end
	if kind == 2 and s > w then return 2 * p + at - now end
	return p + at - now
end

-- into returns the elapsed part of a window in 4096ths. It computes two digits of base 64, because the product
-- can exceed a double's exact range.
local function into(elapsed)
	local high = floor(elapsed * 64 / p)
	return high * 64 + floor((elapsed * 64 - high * p) * 64 / p)
end

-- admits reports whether cost may be spent from a bucket that has spent s at the instant at. A wait of -2 is
-- forced, -1 is a plain take, and other values are microseconds.
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
		if calendar then return arrival(up(s - room, n), at, p) - max(at, now) <= wait end
		-- The wait plus the elapsed part of the interval may exceed 2^53, where a double is inexact. These two
		-- terms are exact, or their sum exceeds any wait.
		return (up(s - room, n) - 1) * p + (p + min(at - now, 0)) <= wait
	end
	local loan = debt * p
	if wait >= 0 and wait < up(loan, n) then loan = wait * n end
	local room = (C - cost) * p + loan
	return room >= 0 and s <= room
end

-- lacks returns the spent tokens in thousandths, for s, at and w from look.
local function lacks(s, at, w)
	if kind == 2 then return s - w + up(w * (4096 - into(max(now - at, 0))), 4096) end
	return up(s, unit)
end

-- account returns an account that has spent s thousandths at the instant t.
local function account(name, s, t)
	local x = {l = name, s = s * unit, t = t}
	if kind == 1 and not first then
		x.t = beginning(t)
	elseif kind == 2 then
		x.t, x.w = max(t, 0) - max(t, 0) % p, 0
	elseif kind == 3 then
		x.s, x.g = 0, {}
		empty(x.g)
		if s > 0 then
			set(x.g, 0, t, s)
			x.g.sum = s
		end
	end
	return x
end

-- kept finishes a change of a log. An empty log gets the instant at.
local function kept(x, at)
	local g = x.g
	if g.first == g.lines then
		empty(g)
		return become(x, 0, at)
	end
	become(x, 0, g.newest)
	if not g.key then return end
	if g.first >= 16 and g.first * 2 >= g.lines then -- remove expired lines
		local rest = call('GETRANGE', g.key, g.head + g.first * LINE, -1)
		g.lines, g.first, g.chunk = g.lines - g.first, 0, nil
		call('SET', g.key, '1:' .. format(HEADER, g.sum, 0, g.lines, x.l) .. rest)
	else
		call('SETRANGE', g.key, 0, '1:' .. format(HEADER, g.sum, g.first, g.lines, x.l))
	end
	call('EXPIRE', g.key, seconds(g.newest + p - now))
end

-- spendlog records cost.
local function spendlog(x, cost)
	local g = x.g
	local at = max(now, g.newest)
	local i, gone = expired(g, at)
	g.first, g.sum = i, g.sum - gone + cost
	if cost > 0 then
		local count, last, c = g.lines - i, nil, nil
		if count > 0 then last, c = entry(g, g.lines - 1) end
		if last == at or count >= 10000 then
			set(g, g.lines - 1, at, c + cost)
		elseif count > 0 then
			set(g, g.lines, at, cost)
		else
			empty(g)
			set(g, 0, at, cost)
			g.sum = cost
		end
	end
	kept(x, at)
end

-- refundlog removes the oldest entries.
local function refundlog(x, amount)
	local g = x.g
	if g.sum == 0 then return end
	local at = max(now, g.newest)
	local i, gone = expired(g, at)
	local sum = g.sum - gone
	if amount >= sum then
		empty(g)
		return kept(x, at)
	end
	g.sum = sum - amount
	while amount > 0 do
		local t, c = entry(g, i)
		if c > amount then
			set(g, i, t, c - amount)
			break
		end
		i, amount = i + 1, amount - c
	end
	g.first = i
	kept(x, at)
end

-- cancellog refunds the entry of a take at the instant t.
local function cancellog(x, amount, t)
	local g = x.g
	local at = max(now, g.newest)
	local i, gone = expired(g, at)
	for j = g.lines - 1, i, -1 do
		if g.key and not (g.chunk and j >= g.from and j < g.from + CHUNK) then entry(g, max(j - CHUNK + 1, i)) end
		local instant, c = entry(g, j)
		if instant < t then return end
		if instant == t then
			local back = min(amount, c)
			g.first, g.sum = i, g.sum - gone - back
			if back < c then
				set(g, j, t, c - back)
			else
				whole(g)
				g.chunk = sub(g.chunk, 1, j * LINE) .. sub(g.chunk, (j + 1) * LINE + 1)
				g.lines = g.lines - 1
				if g.lines > i then g.newest = entry(g, g.lines - 1) end
			end
			return kept(x, at)
		end
	end
end

local note -- see take_history.lua

-- charge charges an account with a cost that another account has admitted. It stops when the account is empty.
local function charge(x, cost)
	local s, at, w = look(x)
	cost = min(cost, C - lacks(s, at, w))
	if cost <= 0 then return end
	note(x, s, 0, cost, -2)
	if kind == 3 then return spendlog(x, cost) end
	become(x, s + cost * unit, at, w)
end
