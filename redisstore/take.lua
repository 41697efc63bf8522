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

-- The two most common cases by themselves, as that is faster than to set up the
-- rest. First, one cost of one token bucket that has no queue, count times:
-- capacity, n, p, cost and count follow. The answer is the row as it was, and how
-- often the cost was admitted. Where the row has other accounts than one of this
-- limit the answer is ?, and nothing has been done.
if a[4] == 2 then
	local C, n, p, cost, admitted, s, at = a[5], a[6], a[7], a[8], a[9], 0, now
	local v = call('GET', KEYS[1])
	if v then
		local t, l
		s, t, l = match(v, '^1:(%d+)@(%d+) (.*)$')
		if l ~= ARGV[2] then return '?' end
		s, t = s + 0, t + 0
		if t > now then
			at = t
		else
			local back = (now - t) * n
			if back >= s then s = 0 else s = s - back end
		end
	end
	local fit = floor((C * p - s) / (cost * p))
	if fit < admitted then admitted = fit > 0 and fit or 0 end
	if admitted > 0 then
		s = s + admitted * cost * p
		local life = virtual and LIFE or floor((floor((s - 1) / n) + at - now) / 1000000) + 2
		call('SETEX', KEYS[1], life == 2 and '2' or format('%d', life), format('1:%d@%d %s', s, at, ARGV[2]))
	end
	return format('%d %s %d', now, v or '-', admitted)
end

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

-- Second, takes of several such buckets, all of it or nothing; those of one bucket
-- at one cost are one operation, with a count. The answer is all rows as they
-- were, and how often each operation was admitted, or ?.
if a[4] == 1 then
	local S, A, L, W, counts = {}, {}, {}, {}, {}
	local i, size, o = 6 + 3 * a[5], #a, 0
	while i <= size do
		local charges, admitted = a[i], a[i+1]
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
		i, o = i + 3 * charges, o + 1
		counts[o] = admitted == 1 and '1' or admitted == 0 and '0' or format('%d', admitted)
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
	return this .. ' ' .. table.concat(raw, ' ') .. ' ' .. table.concat(counts, ' ')
end
