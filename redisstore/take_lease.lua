-- SPDX-License-Identifier: Apache-2.0
--
-- Part 7 of the script, after take_row.lua: leases.

-- Leased tokens count as spent for the whole lifetime of the lease: see package internal/lease for the reason and
-- the protocol. After the version, each lease is a line "holder amount spent seq until limit".

local leases = {}

-- leased returns the leased tokens of a limit.
local function leased(list, name)
	local sum = 0
	for _, e in ipairs(list or {}) do
		if e[6] == name then sum = sum + e[2] end
	end
	return sum
end

-- settle updates an account with leases to the current time.
local function settle(x, list)
	local sum, at, this = leased(list, x.l), max(now, x.t), now
	if sum == 0 then return end
	local function come(t)
		now = t
		local s, from = look(x)
		local least = min(sum, C) * unit
		s = max(s, least)
		-- The refill stops at the leased tokens, so a hold may return only tokens that are missing beside them.
		local h = remember(x, s)
		if h then h.e[#h.e][2] = min(h.e[#h.e][2], s - least) end
		become(x, s, from)
	end
	local j = 1
	while list[j] and list[j][5] <= at do
		if list[j][6] == x.l then
			come(list[j][5])
			sum = sum - list[j][2]
			table.remove(list, j)
		else
			j = j + 1
		end
	end
	come(at)
	now = this
end

-- loans returns the leases of k in the order of their ends, and settles all of its accounts.
local function loans(k, lease)
	local list = leases[lease]
	if not list then
		list = {}
		for holder, amount, used, seq, till, name in string.gmatch(sub(call('GET', KEYS[lease]) or '', 3), '(%S+) (%d+) (%d+) (%d+) (%d+) (%S+)\n') do
			list[#list+1] = {holder, amount + 0, used + 0, seq + 0, till + 0, name}
		end
		table.sort(list, function(x, y) return x[5] < y[5] end)
		leases[lease] = list
	end
	local x = rows[k]
	while x do
		pick(x.l)
		settle(x, list)
		x = x.after
	end
	return list
end

-- writeLeases writes the leases of k and extends the row's life: after the last lease ends, the leased tokens
-- still have to refill.
local function writeLeases(k, lease, list)
	local lines, sums, last, us = {}, {}, 0, 0
	for j, e in ipairs(list) do
		lines[j] = format('%s %d %d %d %d %s\n', unpack(e))
		sums[e[6]] = (sums[e[6]] or 0) + e[2]
		last = max(last, e[5])
	end
	if #list == 0 then return call('DEL', KEYS[lease]) end
	for name, sum in pairs(sums) do
		pick(name)
		us = max(us, last - now + up(sum * unit, n) * (kind == 1 and p or 1))
	end
	least[k] = us
	call('SETEX', KEYS[lease], seconds(us), '1:' .. table.concat(lines))
end

-- ends returns the end and amount of each lease of an account.
local function ends(list, name)
	local parts = {}
	for _, e in ipairs(list) do
		if e[6] == name then parts[#parts+1] = format('%d,%d', e[5], e[2]) end
	end
	return table.concat(parts, ';')
end

-- opened calls open and counts leased tokens as spent. It also returns the leases.
local function opened(k, name, lease)
	local list = lease > 0 and loans(k, lease) or nil
	local x, fresh = open(k, name)
	if list and not own(k, name) then
		if not rows[k] then become(x, 0, 0) end -- it was full before the first lease
		settle(x, list)
	end
	return x, fresh, list
end
