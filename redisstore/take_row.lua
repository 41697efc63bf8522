-- SPDX-License-Identifier: Apache-2.0
--
-- Part 6 of the script, after take_history.lua: the accounts of a key.

-- Rows by the position of their key, and the rows to write. A row is its first account, which was charged last;
-- x.after is the next account. A bucket without a row has false.
local rows, dirty, least = {}, {}, {}

-- parserow returns the accounts of a row, or nothing for other texts.
local function parserow(v)
	local state, s, t, name = match(v, '^1:((%d+)@(%-?%d+)) (%S+)$')
	if s and pick(name) and kind < 2 then return {l = name, s = s + 0, t = t + 0, v = state} end -- the common case
	if sub(v, 1, 2) == '2:' then
		local name, from = match(v, '^2:(%S+) ()')
		if not name or #v ~= from + 15 or not pick(name) or kind > 0 then return end
		local s, t = readpair(v, from)
		return s and {l = name, s = s, t = t}
	end
	local w
	state, s, w, t, name = match(v, '^1:((%d+)%+(%d+)@(%-?%d+)) (%S+)$')
	if s and pick(name) and kind == 2 then return {l = name, s = s + w, t = t + 0, w = w + 0, v = state} end
	local at, size, count, row, last = 3, #v, 0, nil, nil
	if sub(v, 1, 2) ~= '1:' then return end
	repeat
		if count > 0 and sub(v, at, at + 4) == 'held ' then
			local number, h, stop = readHistory(v, at)
			local x = row
			for _ = 2, number or 4 do x = x and x.after end
			if not x then return end
			x.h, at = h, stop
		else
			local x
			local sum, gone, lines, name, stop = match(v, HEAD, at)
			if sum then
				lines = lines + 0
				at = stop + lines * LINE
				if not pick(name) or kind ~= 3 or gone + 0 >= lines or at > size + 1 then return end
				local g = {chunk = sub(v, stop, at - 1), from = 0, sum = sum + 0, first = gone + 0, lines = lines}
				if not match(g.chunk, '^%d+ %d+\n$', -LINE) then return end
				g.newest = entry(g, lines - 1)
				x = {l = name, s = 0, t = g.newest, g = g}
			else
				local s, t, w
				s, t, name, stop = match(v, '^(%d+)@(%-?%d+) (%S+)()', at)
				if not s then s, w, t, name, stop = match(v, '^(%d+)%+(%d+)@(%-?%d+) (%S+)()', at) end
				if not s or not pick(name) or (kind == 2) ~= (w ~= nil) then return end
				x = {l = name, s = s + (w or 0), t = t + 0, w = w and w + 0}
				if kind == 3 then
					if x.s > 0 then return end
					x.g = {}
					empty(x.g)
				end
				if stop <= size and (stop == size or string.byte(v, stop) ~= 10) then return end
				at = stop + 1
			end
			if last then last.after = x else row = x end
			last, count = x, count + 1
		end
	until at > size
	return count <= 3 and row or nil
end

-- turn sets the state of a calendar account in the window that contains now: x.a spent tokens at x.b. Pick its limit first.
local function turn(x)
	x.a, x.b = nil, nil
	local i = windowof(now)
	if i == 0 then return needwindow(x.l, x.t) end
	local s, t = x.s, calendar[i]
	if x.t >= t then return end
	while i > 0 and s > 0 and calendar[i] > x.t do s, i = s - n, i - 1 end
	if i == 0 and s > 0 then return needwindow(x.l, x.t) end
	x.a, x.b = max(s, 0), t
end

-- read is parserow with calendar accounts in their current windows.
local function read(v)
	local row = parserow(v)
	local x = row
	while x do
		newest = max(newest, x.t)
		if string.byte(x.l) == 99 then -- c
			pick(x.l)
			turn(x)
		end
		x = x.after
	end
	return row
end

local broken = {}
for k = 1, reads do
	rows[k] = false
	if raw[k] then
		rows[k] = read(raw[k])
		if not rows[k] then broken[#broken+1] = k end
	end
end
for k = reads + 1, reads + logs do
	local key = KEYS[k]
	local v = call('GETRANGE', key, 0, 255)
	local sum, gone, lines, name, stop = match(sub(v, 3), HEAD)
	local newest = match(call('GETRANGE', key, -LINE, -1), '^(%d+) %d+\n$')
	if sum and newest and sub(v, 1, 2) == '1:' and pick(name) and kind == 3 and gone + 0 < lines + 0 and
		call('STRLEN', key) == stop + 1 + lines * LINE then
		local g = {key = key, head = stop + 1, sum = sum + 0, first = gone + 0, lines = lines + 0, newest = newest + 0}
		rows[k] = {l = name, s = 0, t = g.newest, g = g}
	else
		v = call('GET', key)
		rows[k] = v and read(v)
		if v and not rows[k] then broken[#broken+1] = k end
	end
end
for k = reads + logs + a[6] + 1, #KEYS do
	local v = call('GETRANGE', KEYS[k], 0, 1)
	if v ~= '' and v ~= '1:' then broken[#broken+1] = k end
end
if #broken > 0 then return '!' .. table.concat(broken, ' ') end

-- own returns the account of a limit, or nil.
local function own(k, name)
	local x = rows[k]
	while x and x.l ~= name do x = x.after end
	return x
end

-- open picks a limit, and returns its account and whether it must be added to the row. A new account starts from
-- the account with the most spent tokens.
local function open(k, name)
	local x = own(k, name)
	if x then
		pick(name)
		return x, false
	end
	local at, most, holds = now, 0, 0
	local y = rows[k]
	while y do
		pick(y.l)
		at = max(at, y.t)
		local m = lacks(look(y))
		if m > most then most, holds = m, C end
		y = y.after
	end
	pick(name)
	return account(name, min(most, holds, C) + min(max(most - holds, 0), debt), at), most > 0
end

-- write puts x, which was charged cost, first in its row, and charges the other accounts.
local function write(k, x, cost)
	local y, rest, last, count, others = rows[k], x.after, x, 1, false
	dirty[k], rows[k] = true, x
	if y == x and not rest then return end
	while y do
		local after = y.after
		if y == x then
			after = rest
		elseif count < 3 then
			pick(y.l)
			if y.g then whole(y.g) end
			others = others or look(y) > 0
			charge(y, cost)
			last.after = y
			last, count = y, count + 1
		end
		y = after
	end
	pick(x.l)
	last.after = nil
	if not others then x.after = nil end
	if others and x.g then whole(x.g) end
end
