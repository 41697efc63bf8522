-- SPDX-License-Identifier: Apache-2.0
--
-- Part 5 of the script, after take_account.lua: the histories of buckets with holds, and refunds. Package bucket
-- documents both. x.h is the history of an account:
--   i  its ID: a hold returns tokens only to the history that it has taken from
--   u  the instant from which on it is not needed: the last expiry, and the last start of waiting work
--   n  the longest time from a take to its expiry; without holds, how long the last take awaits its cancellation
--   d  the first expiry of a hold that is refunded then, or 0
--   z  the key that lists these refunds
--   e  the epochs: start, least, later, back and holds

-- remember returns the history of an account that lacks s, or nil. It drops the history once all holds have expired.
local function remember(x, s)
	local h = x.h
	if h and max(now, x.t) >= h.u and h.d == 0 and not (kind < 2 and s > C * unit) then
		x.h, h = nil, nil
	end
	return h
end

-- note records a take of cost: s was missing before it, and after follows. Call it before the account changes.
note = function(x, s, after, cost, wait)
	local h = remember(x, s)
	if not h or kind > 1 then return end
	local e, owed = h.e[#h.e], after - C * unit
	e[2] = min(e[2], s)
	if owed > 0 and wait ~= -2 then
		local _, at = look(x)
		e[3] = min(e[3], max((C - cost) * unit - (n - owed % n) % n, 0))
		-- With a calendar, the call may lack the windows until the start.
		if not calendar then h.u = max(h.u, at + up(owed, n) * (kind == 1 and p or 1)) end
	end
end

-- returned records a refund of an account that lacked s, and lacks after now.
local function returned(x, s, after)
	local h = remember(x, s)
	if not h or kind > 1 then return end
	local e = h.e[#h.e]
	e[2], e[4] = min(e[2], after), min(e[4] + s - after, MOST)
end

-- refills returns the refill from the instant t to the instant at.
local function refills(t, at)
	local times = max(at - t, 0)
	if calendar then
		times = passed(t, at)
	elseif kind == 1 then
		times = floor(times / p)
	end
	if times > floor(MOST / n) then return MOST end
	return times * n
end

-- withdraw lowers the minima of a history: see bucket.History.
local function withdraw(h, back, cost, t, at, s)
	local es, from, most = h.e, 1, MOST
	local left = max(cost - refills(t, at), 0)
	local own = min(back, left)
	while es[from+1] and es[from+1][1] <= t do from = from + 1 end
	if es[from][1] > t then most = left end
	for j = from, #es do
		local e, later = es[j], es[j][3]
		local low, stop = e[2], at
		if es[j+1] then stop = es[j+1][1] else low = min(low, s) end
		e[2] = max(low - back, 0)
		if later < MOST then e[3] = max(later - back, 0) end
		if j == from and e[1] <= t then low = max(low, cost - refills(t, stop)) end
		back = min(max(min(back, low), own), later)
		own = min(own, later)
	end
	return min(back, most)
end

-- prune removes the epochs without open holds, and joins the oldest two while there are too many.
local function prune(h, at)
	local es = h.e
	while es[2] and at - es[2][1] >= h.n do table.remove(es, 1) end
	while es[9] do
		local old, e = table.remove(es, 1), es[1]
		e[1], e[2], e[3] = old[1], min(old[2], e[2]), min(old[3], e[3])
		e[4], e[5] = min(old[4] + e[4], MOST), old[5] + e[5]
	end
end

-- held returns the number of holds of an account.
local function held(x)
	local h, sum = remember(x, (look(x))), 0
	if not h then return 0 end
	prune(h, max(now, x.t))
	for _, e in ipairs(h.e) do sum = sum + e[5] end
	return sum
end

-- extend records the expiry of a hold that was taken at the instant t: see bucket.History.
local function extend(x, t, till, due)
	local h = x.h
	h.u, h.n = max(h.u, till, x.t + 1), max(h.n, till - t)
	if due ~= '' and (h.d == 0 or till < h.d) then h.d = till end
	if due ~= '' then h.z = due end
end

-- begin returns the history of an account whose take at the instant t left s missing. A new one gets the ID id, and begins
-- behind the takes of this instant while the account is in debt: see bucket.History.
local function begin(x, t, s, id)
	local h = remember(x, (look(x)))
	if not h then
		h = {i = id, u = 0, n = 0, d = 0, z = '', e = {{t + (kind < 2 and s > C * unit and 1 or 0), s, MOST, 0, 0}}}
		x.h = h
	end
	return h
end

-- join adds holds to the last epoch, or begins a new one.
local function join(h, t, s, holds)
	local last = h.e[#h.e]
	if last[1] >= t or t - last[1] < up(h.n, 7) then
		last[2], last[5] = min(last[2], s), last[5] + holds
	else
		h.e[#h.e+1] = {t, s, kind < 2 and s > C * unit and last[3] or MOST, 0, holds}
	end
end

-- openHold records a hold of an account whose take at the instant t left s missing. due is the key of its refund, or empty.
-- A new history gets the ID id. openHold returns the ID of the history.
local function openHold(x, t, s, till, due, id)
	local h = begin(x, t, s, id)
	extend(x, t, till, due)
	join(h, t, s, 1)
	prune(h, max(now, x.t))
	return h.i
end

-- await records a take of cost at the instant t that left s missing, and awaits its cancellation for us microseconds: see
-- bucket.Row.WithAwait.
local function await(x, t, s, cost, us, id)
	if kind ~= 0 then return end
	if not remember(x, (look(x))) and s <= cost * unit then return end
	local h, holds = begin(x, t, s, id), 0
	for _, e in ipairs(h.e) do holds = holds + e[5] end
	h.u = max(h.u, t + us)
	if us > h.n or holds == 0 then h.n = us end
	join(h, t, s, 0)
	prune(h, max(now, x.t))
end

-- closeHold removes a hold that was taken at the instant t.
local function closeHold(x, t)
	local h = remember(x, (look(x)))
	if not h then return end
	for j = #h.e, 1, -1 do
		local e = h.e[j]
		if e[1] <= t or j == 1 then
			e[5] = max(e[5] - 1, 0)
			return
		end
	end
end

-- spellHistory returns the history of the account with this number as a line of its row.
local function spellHistory(x, number)
	local h, es = x.h, {}
	for j, e in ipairs(h.e) do es[j] = format('%d,%d,%d,%d,%d', e[1], e[2], e[3], e[4], e[5]) end
	return format('held %d %s %d %d %d %s %d:', number, h.i, h.u, h.n, h.d, table.concat(es, ';'), #h.z) .. h.z .. '\n'
end

-- readHistory reads such a line from position at. It returns the number, the history and the next position, or nothing.
local function readHistory(v, at)
	local number, id, till, longest, due, epochs, size, stop = match(v, '^held (%d) (%S+) (%d+) (%d+) (%d+) (%S+) (%d+):()', at)
	if not number then return end
	local h = {i = id, u = till + 0, n = longest + 0, d = due + 0, z = sub(v, stop, stop + size - 1), e = {}}
	for start, least, later, back, holds in string.gmatch(epochs, '(%-?%d+),(%d+),(%d+),(%d+),(%d+)') do
		h.e[#h.e+1] = {start + 0, least + 0, later + 0, back + 0, holds + 0}
	end
	stop = stop + size
	if #h.e == 0 or #h.z ~= size + 0 or string.byte(v, stop) ~= 10 then return end
	return number + 0, h, stop + 1
end

-- refund returns amount to an account, and leaves at least left spent.
local function refund(x, amount, left)
	if kind == 3 then
		remember(x, 0)
		return refundlog(x, amount)
	end
	if x.s == 0 then return end
	local s, at, w = look(x)
	if kind == 2 then
		remember(x, 0)
		local back = min(amount, s - w)
		local older = min(amount - back, w)
		return become(x, s - back - older, at, w - older)
	end
	local after = 0
	if amount < up(s, unit) then after = s - amount * unit end
	after = max(after, left)
	returned(x, s, after)
	become(x, after, at)
end

-- cancel refunds amount of a take of cost, after which missed was spent at the instant t. It exceeds no limit:
-- see bucket.Limit.Cancel.
local function cancel(x, amount, left, cost, t, missed)
	amount = min(amount, cost)
	if amount <= 0 then return end
	if kind == 3 then
		remember(x, 0)
		return cancellog(x, amount, t)
	end
	if x.s == 0 then return end
	local s, at, w = look(x)
	local h = remember(x, s)
	if kind == 2 then
		local back = min(amount, s - w)
		if back > 0 and at == t then become(x, s - back, at, w) end
		return
	end
	local asked, whole, back = amount * unit, cost * unit, 0
	local refilled, owes = refills(t, at), s > C * unit
	local later = s - missed + refilled
	if owes and (not h or h.e[1][1] > t) then
		if amount == cost and later == 0 then back = asked end
	elseif owes then
		for j = #h.e, 1, -1 do
			later = later + h.e[j][4]
			if h.e[j][1] <= t then break end
		end
		back = asked - max(later, 0)
	elseif not h then
		back = min(asked, max(whole - refilled, 0))
	end
	local copy
	if h then -- only a refund changes the minima
		copy = {}
		for j, e in ipairs(h.e) do copy[j] = {unpack(e)} end
		local without = withdraw(h, asked, whole, t, at, s)
		if not owes then
			back = without
		elseif copy[1][1] <= t then
			back = max(back, without)
		end
	end
	back = min(back, s)
	if back <= 0 then
		if h then h.e = copy end
		return
	end
	local after = max(s - back, left)
	returned(x, s, after)
	become(x, after, at)
end
