-- SPDX-License-Identifier: Apache-2.0
--
-- Part 11 of the script, after take_hold.lua: the operations and the writes.

local answers = {}
local function answer(v) answers[#answers + 1] = v end

local i, size = 8, #a

-- simple takes one cost from one bucket, count times. The answer is the number of admitted takes.
local function simple(k, name, cost, count)
	local admitted, x, fresh = 0, open(k, name)
	local s, at, w = look(x)
	local before = show(x)
	if kind == 0 and not queued and cost > 0 then
		local room = C * p - s
		if room > 0 then admitted = min(count, floor(room / (cost * p))) end
		s = s + admitted * cost * p
	else
		while admitted < count and admits(s, at, w, cost, -1) do
			s, admitted = s + cost * unit, admitted + 1
		end
	end
	if admitted > 0 then
		if x.h then
			for j = admitted - 1, 0, -1 do note(x, s - (j + 1) * cost * unit, s - j * cost * unit, cost, -1) end
		end
		become(x, s, at, w)
		write(k, x, admitted * cost)
	elseif fresh then -- else the next take would create the account again
		write(k, x, 0)
	end
	answers[#answers + 1] = admitted
	answers[#answers + 1] = before
end

-- take handles takes of several buckets, with an ID, up to a cost, with a wait, or as a dry run.
local function take()
	local flags, wait, id, count = a[i+1], a[i+2], a[i+3], a[i+4]
	local dry, part, renew, punished, hold = flags % 2 == 1, flags % 4 >= 2, flags % 16 >= 8, penalties ~= nil, nil
	local c = i + 5
	i = c + 4 * count
	local awaits = flags >= 16 and i or nil
	if awaits then i = i + 1 + count end
	local memory = i -- the lifetime, the attempt's name, and the limits' names
	local attempt
	if flags % 8 >= 4 then
		hold, i = readHold(i + 2 + count, count)
		local said = recallHold(hold, c)
		if said then
			penalties = nil
			return answer(said)
		end
	elseif id > 0 then
		i = i + 2 + count
		attempt = a[memory + 1] > 0 and ARGV[a[memory + 1]] or '-'
		local owners, rest, at = match(call('GET', KEYS[id]) or '', '^1:(%S*) (1 (%d+) .*)$')
		for j = c, c + 4 * count - 4, 4 do -- the retry of a take with an ended slot is a new take
			if slots.own(a[j]) and a[j+2] > 0 and not slots.holds(a[j], ARGV[a[j+3]]) then at = nil end
		end
		if at and now - at < a[memory] then
			if owners ~= '-' then -- this attempt owns the take too: see giveback
				owners = attempt ~= '-' and #owners < 256 and owners .. ',' .. attempt or '-'
				call('SET', KEYS[id], '1:' .. owners .. ' ' .. rest, 'KEEPTTL')
			end
			penalties = nil
			return answer(rest)
		end
	end
	local asked, there, ok = {}, 9007199254740991, true
	for j = 1, count do
		if slots.own(a[c]) then
			pick(ARGV[1 + a[c+1]])
			local wait = slots.wait(a[c], ARGV[a[c+3]], a[c+2], renew)
			ok = ok and wait == 0
			asked[j] = {slot = true, cost = a[c+2], t = wait}
		else
			local x, fresh, list = opened(a[c], ARGV[1 + a[c+1]], a[c+3])
			local e = {x = x, fresh = fresh, list = list, cost = a[c+2], s = 0, t = 0, w = false, text = false}
			if kind == 3 then
				if part then there = min(there, max(C - looklog(x.g), 0)) end
			else
				e.s, e.t, e.w = look(x)
				e.text = show(x)
				if part then there = min(there, max(C - lacks(e.s, e.t, e.w), 0)) end
			end
			asked[j] = e
		end
		c = c + 4
	end
	for j = 1, count do
		local e = asked[j]
		if not e.slot then
			local g = e.x.g
			pick(e.x.l)
			if part and e.cost > there then e.cost = min(e.cost, max(there - there % 1000, 1000)) end
			if punished then
				local own
				if g then
					e.t = waitlog(g, e.cost, wait)
					own = e.t == 0
				else
					own = admits(e.s, e.t, e.w, e.cost, wait)
				end
				ok = not denies(j, e, own, wait, dry) and own and ok
			elseif g then
				e.t = waitlog(g, e.cost, wait)
				ok = ok and e.t == 0
			else
				ok = ok and admits(e.s, e.t, e.w, e.cost, wait)
			end
		end
	end
	penalties = nil
	c = c - 4 * count
	local v, parts = format(ok and '1 %d' or '0 %d', now), {}
	for j = 1, count do
		local k, e = a[c], asked[j]
		local x, list, cost, text = e.x, e.list, e.cost, e.text
		pick(e.slot and ARGV[1 + a[c+1]] or x.l)
		if e.slot then
			if ok and not dry and cost > 0 then slots.put(k, ARGV[a[c+3]]) end
			if hold then slots.note(hold.slots, k, ARGV[a[c+3]]) end
			text = slots.show(k, e.t)
		elseif x.g and ok and not dry then
			note(x, 0, 0, cost, wait)
			spendlog(x, cost)
			text = format('L%d,%d,0', x.g.sum, x.t - now)
		elseif x.g then
			local s, at = looklog(x.g)
			text = format('L%d,%d,%d', s, at - now, e.t)
		elseif ok and not dry then
			note(x, e.s, e.s + cost * unit, cost, wait)
			become(x, e.s + cost * unit, e.t, e.w)
			if id > 0 or hold then text = show(x) end
		end
		if x and not dry and (ok or e.fresh) then
			write(k, x, ok and cost or 0)
			if ok and hold then addPart(hold, parts, j, k, x, cost, a[c+3]) end
			if ok and awaits and cost > 0 and a[awaits+j] > 0 then
				pick(x.l)
				await(x, x.t, x.s, cost, a[awaits+j], ARGV[a[awaits]])
			end
			if list then writeLeases(k, a[c+3], list) end
		end
		v = v .. ((part or id > 0 or hold) and format(' %d:', cost) or ' :') .. text
		if ok and (id > 0 or hold) then v = v .. ':' .. ARGV[a[memory + 1 + j]] end
		if not ok and list then
			local waits = ends(list, x.l)
			if waits ~= '' then v = v .. '::' .. waits end
		end
		if e.penalty then v = v .. e.penalty end
		c = c + 4
	end
	if hold and ok then addHold(hold, v, parts) end
	if id > 0 and ok then
		call('SETEX', KEYS[id], virtual and LIFE or floor(a[memory] / 1000000), '1:' .. attempt .. ' ' .. v)
	end
	return answer(v)
end

-- disown removes an attempt from the owners of a remembered take. For the last owner it returns the answer to the
-- take. A take with owner "-" stays: an attempt without a name has seen it, or too many attempts have.
local function disown(key, attempt)
	local owners, rest = match(call('GET', key) or '', '^1:(%S*)( .*)$')
	owners = ',' .. (owners or '') .. ','
	local from, to = string.find(owners, ',' .. attempt .. ',', 1, true)
	if not from then return end
	owners = sub(owners, 1, from) .. sub(owners, to + 1)
	if owners == ',' then
		call('DEL', key)
		return rest
	end
	call('SET', key, '1:' .. sub(owners, 2, -2) .. rest, 'KEEPTTL')
end

-- taken lists the cost, the instant and the spent tokens of each charge in a remembered answer.
local function taken(rest)
	local list, at = {}, match(rest, '^ 1 (%d+)')
	for cost, state in string.gmatch(rest, ' (%d+):([^: ]+)') do
		local s, t = match(state, '^(%d+)@(%-?%d+)$')
		if sub(state, 1, 1) == 'S' then s, t = '0', 0 end
		if not s then s, t = match(state, '^(%d+%+%d+)@(%-?%d+)$') end
		if not s then
			s, t = match(state, '^L(%d+),(%-?%d+),')
			t = t + at
		end
		list[#list+1] = {cost + 0, t + 0, match(s, '^%d+') + 0}
	end
	return list
end

-- giveback refunds costs. With an ID it refunds once. A remembered take is refunded and deleted when its last
-- attempt gives it up. Any other refund is remembered for some time.
local function giveback()
	local id, attempt, horizon, count = a[i+1], a[i+2], a[i+3], a[i+4]
	local mine, made, c = true, nil, i + 5
	i = c + 7 * count
	if attempt > 0 then
		local rest = disown(KEYS[id], ARGV[attempt])
		mine, made = rest ~= nil, rest and taken(rest)
	elseif id > 0 then
		local at = match(call('GET', KEYS[id]) or '', '^1:undone (%d+)$')
		mine = not at or now - at >= horizon
		if mine then call('SETEX', KEYS[id], virtual and LIFE or floor(horizon / 1000000), format('1:undone %d', now)) end
	end
	if not mine then return end
	for j = 1, count do
		local k, l, amount, lease, cost, t, missed = unpack(a, c, c + 6)
		local name, slot = ARGV[1 + l], slots.own(k)
		local list = not slot and lease > 0 and loans(k, lease) or nil
		if made then cost, t, missed = unpack(made[j]) end
		if slot then
			call('ZREM', KEYS[k], ARGV[lease])
		elseif cost >= 0 then -- a take, which one account admitted
			local x = own(k, name)
			pick(name)
			if x then cancel(x, amount, min(leased(list, name), C) * unit, cost, t, missed) end
		elseif amount > 0 then
			local x = rows[k]
			while x do
				pick(x.l)
				refund(x, amount, min(leased(list, x.l), C) * unit)
				x = x.after
			end
		end
		if rows[k] then dirty[k] = true end
		if list then writeLeases(k, lease, list) end
		c = c + 7
	end
end

-- borrow reports what a holder has spent and keeps of its lease, returns the rest, and grants more.
local function borrow()
	local k, name, lease = a[i+1], ARGV[1 + a[i+2]], a[i+3]
	local holder, seq, used, keep, want, term = ARGV[a[i+4]], a[i+5], a[i+6], a[i+7], a[i+8], a[i+9]
	i = i + 10
	local x, _, list = opened(k, name, lease)
	local s, at = look(x)
	local back, kept = 0, 0
	for j, e in ipairs(list) do
		if e[1] == holder then
			if e[4] >= seq then return answer('-1 0 ' .. show(x)) end
			back = max(e[2] - (used - e[3]), 0)
			-- Otherwise the lease that the holder keeps has ended, and this one was granted by a lost answer.
			if keep <= back then back, kept = back - keep, 1 end
			table.remove(list, j)
			break
		end
	end
	if kept == 0 then keep = 0 end
	if back >= up(s, unit) then s = 0 else s = s - back * unit end
	s = max(s, min(leased(list, name) + keep, C) * unit)
	local granted = min(want, max(C - lacks(s, at), 0))
	if keep + granted > 0 then
		list[#list + 1] = {holder, keep + granted, used, seq, max(now, x.t) + term, name}
	end
	if granted > 0 then note(x, s, s + granted * unit, granted, -1) end
	become(x, s + granted * unit, at)
	if keep + granted > 0 or own(k, name) or not rows[k] then write(k, x, granted) end
	writeLeases(k, lease, list)
	answer(format('%d %d %s', granted, kept, show(x)))
end

local function answerWith(f)
	return function()
		local said
		said, i = f(i)
		answer(said)
	end
end

local operations = {[2] = take, [3] = giveback, [4] = borrow, [5] = function() i = announce(i) end,
	[6] = answerWith(settleHold), [7] = answerWith(renewHold)}
while i <= size do
	if a[i] == 1 then
		simple(a[i+1], ARGV[1 + a[i+2]], a[i+3], a[i+4])
		i = i + 5
	else
		operations[a[i]]()
	end
end

for k in pairs(dirty) do
	local x, us, text = rows[k], least[k] or 0, '1:'
	if not (x.g and x.g.key) then -- else it is written already
		pick(x.l)
		if kind == 0 and not x.after and not x.h then
			us, text = max(us, life(x)), '2:' .. x.l .. ' ' .. pack(PACKED, x.s, x.t)
			x = nil
		end
		local number, histories = 0, ''
		while x do
			pick(x.l)
			us, number = max(us, life(x)), number + 1
			text = text .. spell(x)
			if remember(x, (look(x))) then
				us = max(us, x.h.u - now)
				histories = histories .. spellHistory(x, number)
			end
			x = x.after
			if (x or histories ~= '') and string.byte(text, -1) ~= 10 then text = text .. '\n' end
		end
		text = text .. histories
		if virtual or us > 0 then
			call('SETEX', KEYS[k], seconds(us), text)
		else
			call('DEL', KEYS[k])
		end
	end
end
return format('%d ', now) .. table.concat(answers, ' ')
