-- SPDX-License-Identifier: Apache-2.0
--
-- Part 2 of the script, after take.lua: variant 3, for batches of takes and cancellations of one token bucket each. They have no
-- queue, ID or lease. The variant encodes, answers and computes like the general operations, and is several times faster.
-- A batch that needs more continues with the general operations, for example for a bucket in debt or a row with several
-- accounts. Nothing has changed then.

local function settleAll()
	-- The states by the position of their key. X is true for rows that exist.
	local limits, S, T, H, X, L, dirty, answers = {}, {}, {}, {}, {}, {}, {}, {}

	-- Most calls need only the last epochs of a history: h.e. The others stay text in h.head.
	local function addEpochs(h, text)
		for start, least, later, back, holds in string.gmatch(text, '(%-?%d+),(%d+),(%d+),(%d+),(%d+)') do
			h.e[#h.e+1] = {start + 0, least + 0, later + 0, back + 0, holds + 0}
		end
	end

	-- parseFrom moves the epoch of the instant t, and all later ones, from h.head to h.e.
	local function parseFrom(h, t)
		if h.head == '' or h.e[1][1] <= t then return end
		local from, later = 1, h.e
		for at, start in string.gmatch(h.head, '()(%-?%d+)[^;]*;') do
			if start + 0 > t then break end
			from = at
		end
		h.e = {}
		addEpochs(h, sub(h.head, from))
		for j = 1, #later do h.e[#h.e+1] = later[j] end
		h.head = sub(h.head, 1, from - 1)
	end

	-- prune removes and joins epochs: see bucket.History.
	local function prune(h, t)
		while true do
			local second = h.head == '' and h.e[2] and h.e[2][1] or h.head ~= '' and (match(h.head, '^[^;]*;(%-?%d+)') or h.e[1][1])
			if not second or t - second < h.n then break end
			if h.head == '' then table.remove(h.e, 1) else h.head = sub(h.head, find(h.head, ';', 1, true) + 1) end
		end
		local _, others = string.gsub(h.head, ';', '')
		if others + #h.e <= 8 then return end
		parseFrom(h, -MOST)
		while h.e[9] do
			local old, e = table.remove(h.e, 1), h.e[1]
			e[1], e[2], e[3] = old[1], min(old[2], e[2]), min(old[3], e[3])
			e[4], e[5] = min(old[4] + e[4], MOST), old[5] + e[5]
		end
	end

	-- read parses the row of a key, and returns its limit, or nothing if the general operations are needed.
	local function read(k, number)
		local text = ARGV[1 + number]
		if L[k] then return L[k].text == text and L[k] or nil end
		local l = limits[number]
		if not l then
			local c, n, p = match(text, '^(%d+)%+(%d+)/(%d+)')
			if not c then return end
			l = {text = text, head = '2:' .. text .. ' ', full = c * p, n = n + 0, unit = p + 0}
			limits[number] = l
		end
		local v = raw[k]
		S[k], T[k], L[k] = 0, now, l
		if not v then return l end
		X[k] = true
		if find(v, l.head, 1, true) == 1 and #v == #l.head + 16 then
			S[k], T[k] = readpair(v, #l.head + 1)
			return S[k] and l
		end
		local s, t, name, id, till, longest, epochs = match(v, '^1:(%d+)@(%-?%d+) (%S+)\nheld 1 (%S+) (%d+) (%d+) 0 (%S+) 0:\n$')
		if not name then
			s, t, name = match(v, '^1:(%d+)@(%-?%d+) (%S+)$')
		end
		if name ~= text then return end
		S[k], T[k] = s + 0, t + 0
		if not epochs then return l end
		local head, last = match(epochs, '^(.*;)([^;]*)$')
		local h = {i = id, u = till + 0, n = longest + 0, e = {}, head = head or ''}
		addEpochs(h, last or epochs)
		if #h.e ~= 1 then return end
		H[k] = h
		return l
	end

	local function look(k, l)
		local at = max(now, T[k])
		return max(S[k] - (at - T[k]) * l.n, 0), at
	end

	-- spend charges cost units to a bucket that lacks s at the instant at.
	local function spend(k, s, at, cost)
		local h = H[k]
		if h and at >= h.u then H[k], h = nil, nil end
		if h then h.e[#h.e][2] = min(h.e[#h.e][2], s) end
		S[k], T[k], X[k], dirty[k] = s + cost, at, true, true
	end

	-- await records a take of cost units that left s missing at the instant t: see bucket.Row.WithAwait.
	local function await(k, t, s, cost, us, id)
		local h = H[k]
		if not h then
			if s <= cost then return end
			h = {i = id, u = 0, n = 0, e = {{t, s, MOST, 0, 0}}, head = ''}
			H[k] = h
		end
		local holds = find(h.head, ',[1-9]%d*;') -- an open hold of another epoch
		for j = 1, #h.e do holds = holds or h.e[j][5] > 0 end
		h.u = max(h.u, t + us)
		if us > h.n or not holds then h.n = us end
		local last = h.e[#h.e]
		if last[1] >= t or t - last[1] < floor((h.n - 1) / 7) + 1 then
			last[2] = min(last[2], s)
		else
			h.e[#h.e+1] = {t, s, MOST, 0, 0}
		end
		prune(h, t)
	end

	-- unfilled returns the part of a cost that has not refilled between two instants.
	local function unfilled(cost, from, to, n)
		return max(cost - max(to - from, 0) * n, 0)
	end

	-- withdraw lowers the minima of a history, and returns the part of back that is left: see bucket.History.
	local function withdraw(h, back, cost, t, at, s, n)
		local es, from, most = h.e, 1, MOST
		local own = min(back, unfilled(cost, t, at, n))
		while es[from+1] and es[from+1][1] <= t do from = from + 1 end
		if es[from][1] > t then most = unfilled(cost, t, at, n) end
		for j = from, #es do
			local e, later = es[j], es[j][3]
			local low, stop = e[2], at
			if es[j+1] then stop = es[j+1][1] else low = min(low, s) end
			e[2] = max(low - back, 0)
			if later < MOST then e[3] = max(later - back, 0) end
			if j == from and e[1] <= t then low = max(low, unfilled(cost, t, stop, n)) end
			back = min(max(min(back, low), own), later)
			own = min(own, later)
		end
		return min(back, most)
	end

	-- cancel returns at most back units of a take of cost units at the instant t. It returns false for a bucket in debt.
	local function cancel(k, l, back, cost, t)
		local s, at = look(k, l)
		if s > l.full then return false end
		local h = H[k]
		if h and at >= h.u then H[k], h, dirty[k] = nil, nil, true end
		if s == 0 then return true end
		if not h then
			back = min(back, unfilled(cost, t, at, l.n), s)
			if back > 0 then S[k], T[k], dirty[k] = s - back, at, true end
			return true
		end
		parseFrom(h, t)
		local kept = {}
		for j = 1, #h.e do
			local e = h.e[j]
			kept[j] = {e[1], e[2], e[3], e[4], e[5]}
		end
		back = min(withdraw(h, back, cost, t, at, s, l.n), s)
		if back <= 0 then
			h.e = kept
			return true
		end
		local e = h.e[#h.e]
		e[2], e[4] = min(e[2], s - back), min(e[4] + back, MOST)
		S[k], T[k], dirty[k] = s - back, at, true
		return true
	end

	local i, size = 8, #a
	while i <= size do
		if a[i] == 3 then -- cancel
			local k, cost = a[i+5], a[i+9]
			local l = read(k, a[i+6])
			if not l or X[k] and not cancel(k, l, min(a[i+7], cost) * l.unit, cost * l.unit, a[i+10]) then return end
			i = i + 12
		else
			local simple = a[i] == 1
			local at = simple and i + 1 or i + 5
			local k, cost = a[at], a[at+2]
			local l = read(k, a[at+1])
			if not l then return end
			cost = cost * l.unit
			local s, t = look(k, l)
			local before = format('%d@%d', S[k], T[k])
			if simple then
				local admitted = min(a[at+3], max(floor((l.full - s) / cost), 0))
				if admitted > 0 then spend(k, s, t, admitted * cost) end
				answers[#answers+1] = format('%d ', admitted) .. before
				i = i + 5
			else
				local ok = s <= l.full - cost
				if ok then
					spend(k, s, t, cost)
					if a[i+10] > 0 then await(k, t, S[k], cost, a[i+10], ARGV[a[i+9]]) end
				end
				answers[#answers+1] = format(ok and '1 %d :' or '0 %d :', now) .. before
				i = i + 11
			end
		end
	end
	for k in pairs(dirty) do
		local l, h = L[k], H[k]
		local s, at = look(k, l)
		local us = s > 0 and floor((s - 1) / l.n) + 1 + at - now or T[k] - now
		local text = l.head .. pack(PACKED, S[k], T[k])
		if h then
			local es = {}
			for j, e in ipairs(h.e) do es[j] = format('%d,%d,%d,%d,%d', e[1], e[2], e[3], e[4], e[5]) end
			us = max(us, h.u - now)
			text = format('1:%d@%d ', S[k], T[k]) .. l.text .. format('\nheld 1 %s %d %d 0 %s 0:\n', h.i, h.u, h.n, h.head .. table.concat(es, ';'))
		end
		if virtual or us > 0 then
			call('SETEX', KEYS[k], virtual and LIFE or format('%d', floor((max(min(us, MOST), 1) - 1) / 1000000) + 2), text)
		else
			call('DEL', KEYS[k])
		end
	end
	return format('%d ', now) .. table.concat(answers, ' ')
end

if a[4] == 3 then
	local said = settleAll()
	if said then return said end
end
