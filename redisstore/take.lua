-- SPDX-License-Identifier: Apache-2.0
--
-- Everything a store does to buckets: any number of operations in one atomic
-- call. The arithmetic is that of package bucket, in doubles: every number is an
-- integer below 2^53, or only compared. The script goes on in take_account.lua,
-- take_row.lua, take_lease.lua and take_operation.lua.
--
-- KEYS     the keys of the batch: first those that hold rows, which are read
--          together, then rows that are asked under a sliding log, then leases and
--          takes that are remembered.
-- ARGV[1]  numbers, packed, called a below: the time in microseconds or -1, the
--          numbers of rows and of logs among the keys, how plain the operations
--          are, then the limits and the operations. See program.go, which writes
--          them.
-- ARGV[2]  and on: the texts of the limits, then names, which operations refer to.
--
-- Returns the time and an answer for each operation, separated by spaces. An
-- answer shows the buckets as they were before: the store works out the rest.
-- Where keys hold values that are no rows, it returns ! and their numbers.
--
-- A row is "1:", the version of the format, and one to three accounts, one for each
-- version of the limit, each on a line of its own:
--   spent@asof limit         spent is missing at asof, microseconds since 1970: of a
--                            token bucket in units of its limit, else in thousandths
--   cur+prev@start limit     a sliding window
--   log sum=… first=… lines=… limit    a sliding log, and a line for each entry
-- A key that is absent is a full bucket. Nothing is written before all of it is
-- known to be right, so that an error means that nothing was done.

local call, floor, format, match, max, min, sub = redis.call, math.floor, string.format, string.match, math.max, math.min, string.sub
local a = cmsgpack.unpack(ARGV[1])
local now, virtual = a[1], a[1] >= 0
if not virtual then
	local t = call('TIME')
	now = t[1] * 1000000 + t[2]
end

-- Rows live until they are full, and one to two seconds: expiry counts from an
-- instant before the one that is read here, and to delete a row and make it anew
-- costs more than to keep it a little longer. Under virtual time,
-- which no expiry can follow, they live so long.
local LIFE = 3600

local reads, logs = a[2], a[3]
local raw = {}
if reads == 1 then
	raw[1] = call('GET', KEYS[1])
elseif reads > 0 then
	raw = call('MGET', unpack(KEYS, 1, reads))
	for k = 1, reads do -- MGET takes what is no text for absent, and STRLEN is an error then
		if not raw[k] then call('STRLEN', KEYS[k]) end
	end
end

-- The two most common cases have variants of their own, as they are faster than the
-- general part. They answer with all rows as they were and with how many takes were
-- admitted, then with the number of each operation that was admitted less often than
-- asked, and how often it was. Where a row has other accounts than one of the limit
-- that asks, the answer is ?, and nothing has been done.

-- First, takes of token buckets without a queue, all under one limit and at one cost:
-- capacity, n, p and cost follow, then how often each bucket is asked, unless it is
-- once.
if a[4] == 2 then
	local n, p, l, S, T, total, short = a[6], a[7], ARGV[2], {}, {}, 0, {}
	local full, unit, this = a[5] * p, a[8] * p, format('%d', now)
	local tail = format('@%s %s', this, l)
	for k = 1, reads do
		local v = raw[k]
		if v then
			local s, t, name = match(v, '^1:(%d+)@(%d+) (.*)$')
			if name ~= l then return '?' end
			S[k], T[k] = s + 0, t + 0
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
			call('SETEX', KEYS[k], life == 2 and '2' or format('%d', life),
				at == now and format('1:%d%s', after, tail) or format('1:%d@%d %s', after, at, l))
		end
	end
	return format('%s %s %d%s', this, table.concat(raw, ' '), total, table.concat(short))
end

-- Second, takes of several such buckets, all of it or nothing; those of one bucket
-- at one cost are one operation, with a count.
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
					local t, name
					s, t, name = match(v, '^1:(%d+)@(%d+) (.*)$')
					if name ~= ARGV[l+1] then return '?' end
					s, t = s + 0, t + 0
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
	local this, limit, tail = format('%d', now), 0, ''
	for k = 1, reads do
		if W[k] then
			local s, at, l = S[k], A[k], L[k]
			if l ~= limit then limit, tail = l, format('@%s %s', this, ARGV[l+1]) end
			local value = at == now and format('1:%d%s', s, tail) or format('1:%d@%d %s', s, at, ARGV[l+1])
			local life = virtual and LIFE or floor((floor((s - 1) / a[3*l+4]) + at - now) / 1000000) + 2
			call('SETEX', KEYS[k], life == 2 and '2' or format('%d', life), value)
		end
		if not raw[k] then raw[k] = '-' end
	end
	return format('%s %s %d%s', this, table.concat(raw, ' '), total, table.concat(short))
end
