-- SPDX-License-Identifier: Apache-2.0
--
-- Runs any number of bucket operations in one atomic call. It computes like package bucket, in doubles: every
-- number is an integer below 2^53, or is only compared. The script continues in take_settle.lua, take_calendar.lua,
-- take_account.lua, take_history.lua, take_row.lua, take_lease.lua, take_slots.lua, take_penalty.lua, take_hold.lua and take_operation.lua.
--
-- KEYS     the keys of the batch: first rows, which are read together, then rows of sliding logs, then slots, then
--          records of holds that end or are renewed, then leases and remembered takes.
-- ARGV[1]  packed numbers, named a below: the time in microseconds or -1, the numbers of rows and of logs
--          among the keys, 0 to 3 for the variant of the operations (see below), the limits, or in variants 0 and 3 the
--          numbers of calendars, of keys of slots and of records of holds to end, and the operations. program.go and
--          encode.go write them.
-- ARGV[2]  and on: the texts of the limits, then the names that operations refer to, then the calendars.
--
-- Returns the time and an answer per operation, separated by spaces. An answer shows the buckets before the
-- operation; the store computes the rest. If keys hold values that are not rows, it returns ! and the positions
-- of these keys. If it needs windows of calendars that the call does not carry, it returns ~ and the time. Pairs of
-- the text of a limit and an instant follow. Both change nothing.
--
-- A row begins with its format version. A row of version 1 has one to three accounts, one per version of the
-- limit, each on its own line:
--   spent@asof limit         spent tokens at asof, in microseconds since 1970. The unit is the limit's unit for a
--                            token bucket, and a thousandth otherwise
--   cur+prev@start limit     a sliding window
--   log sum=… first=… lines=… limit    a sliding log, followed by a line per entry
-- A row of version 2 is one token bucket, the most common row, and faster to read and write. It has the limit, a
-- space, and spent and asof as little-endian doubles of 8 bytes. An absent key is a full bucket. The script validates
-- all keys before it writes the first one, so an error means that nothing was changed.

local call, floor, format, match, max, min, sub = redis.call, math.floor, string.format, string.match, math.max, math.min, string.sub
local pack, parse, find = struct.pack, struct.unpack, string.find
local a = cmsgpack.unpack(ARGV[1])
local now, virtual = a[1], a[1] >= 0
if not virtual then
	local t = call('TIME')
	now = t[1] * 1000000 + t[2]
end

-- Rows live until they are full, plus one to two seconds. Expiry starts before the instant that is read here. A
-- short delay costs less than deleting and recreating a row. Expiry cannot follow virtual time, where rows live
-- this many seconds.
local LIFE = 3600

-- PACKED is the layout after the limit in a row of version 2, and MOST the highest number.
local PACKED, MOST = '<dd', 9007199254740991

-- readpair returns spent and asof of a row of version 2 from position from, or nothing if they are not integers.
local function readpair(v, from)
	local s, t = parse(PACKED, v, from)
	if s >= 0 and s <= MOST and s % 1 == 0 and t >= -MOST and t <= MOST and t % 1 == 0 then return s, t end
end

local reads, logs = a[2], a[3]
local raw = {}
if reads == 1 then
	raw[1] = call('GET', KEYS[1])
elseif reads > 0 then
	raw = call('MGET', unpack(KEYS, 1, reads))
	for k = 1, reads do -- MGET returns nil for other types; STRLEN then raises an error
		if not raw[k] then call('STRLEN', KEYS[k]) end
	end
end

-- The two most common cases have faster variants. They return all rows before the takes and the number of
-- admitted takes. Then follow the operations that admitted fewer takes than requested: their numbers and their
-- counts. If a row has any account other than the charge's limit, they return ? and change nothing.

-- Variant 2: takes of token buckets without a queue, under one limit and at one cost. Capacity, n, p and cost
-- follow, then the number of takes per bucket, unless each is 1.
if a[4] == 2 then
	local n, p, l, S, T, total, short = a[6], a[7], ARGV[2], {}, {}, 0, {}
	local full, unit, head = a[5] * p, a[8] * p, '2:' .. l .. ' '
	local from = #head + 1
	for k = 1, reads do
		local v = raw[k]
		if v then
			if #v ~= from + 15 or find(v, head, 1, true) ~= 1 then return '?' end
			S[k], T[k] = readpair(v, from)
			if not S[k] then return '?' end
		else
			raw[k], S[k], T[k] = '-', 0, now
		end
	end
	for k = 1, reads do
		local s, at, admitted = S[k], T[k], a[8+k] or 1
		if at <= now then
			s, at = s - (now - at) * n, now
			if s < 0 then s = 0 end
		end
		local after = s + admitted * unit
		if after > full then
			admitted = max(floor((full - s) / unit), 0)
			after = s + admitted * unit
			short[#short+1] = format(' %d %d', k, admitted)
		end
		if admitted > 0 then
			total = total + admitted
			local life = virtual and LIFE or floor(((after - 1) / n + at - now) / 1000000) + 2
			call('SETEX', KEYS[k], life == 2 and '2' or format('%d', life), head .. pack(PACKED, after, at))
		end
	end
	-- The rows are joined by .., because format's %s would stop at a zero byte.
	return format('%d ', now) .. table.concat(raw, ' ') .. format(' %d', total) .. table.concat(short)
end

-- Variant 1: takes of several such buckets, all or nothing. Takes of one bucket at one cost are one operation
-- with a count.
if a[4] == 1 then
	local S, A, L, W, total, short = {}, {}, {}, {}, 0, {}
	local i, size, o = 6 + 3 * a[5], #a, 1
	while i <= size do
		local charges, count = a[i], a[i+1]
		local admitted = count
		i = i + 2
		for j = i, i + 3 * charges - 3, 3 do
			local k, l = a[j], a[j+1]
			local s = S[k]
			if not s then
				local v, at = raw[k], now
				s = 0
				if v then
					local head, t = '2:' .. ARGV[l+1] .. ' '
					if #v ~= #head + 16 or find(v, head, 1, true) ~= 1 then return '?' end
					s, t = readpair(v, #head + 1)
					if not s then return '?' end
					if t > now then
						at = t
					else
						local back = (now - t) * a[3*l+4]
						if back >= s then s = 0 else s = s - back end
					end
				end
				S[k], A[k], L[k] = s, at, l
			elseif L[k] ~= l and ARGV[L[k]+1] ~= ARGV[l+1] then
				return '?'
			end
			local p = a[3*l+5]
			local fit = floor((a[3*l+3] * p - s) / (a[j+2] * p))
			if fit < admitted then admitted = fit > 0 and fit or 0 end
		end
		if admitted > 0 then
			for j = i, i + 3 * charges - 3, 3 do
				local k = a[j]
				S[k], W[k] = S[k] + admitted * a[j+2] * a[3*a[j+1]+5], true
			end
		end
		total = total + admitted
		if admitted < count then short[#short+1] = format(' %d %d', o, admitted) end
		i, o = i + 3 * charges, o + 1
	end
	for k = 1, reads do
		if W[k] then
			local s, at, l = S[k], A[k], L[k]
			local life = virtual and LIFE or floor(((s - 1) / a[3*l+4] + at - now) / 1000000) + 2
			call('SETEX', KEYS[k], life == 2 and '2' or format('%d', life), '2:' .. ARGV[l+1] .. ' ' .. pack(PACKED, s, at))
		end
		if not raw[k] then raw[k] = '-' end
	end
	return format('%d ', now) .. table.concat(raw, ' ') .. format(' %d', total) .. table.concat(short)
end
