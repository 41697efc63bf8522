-- SPDX-License-Identifier: Apache-2.0
--
-- Part 9 of the script, after take_slots.lua: penalties. They compute like bucket.Penalty.
--
-- A penalty is a key beside its bucket's key: 1:p until length expires level. Until is its end, and length its length
-- in microseconds. From the instant expires on, the key counts as absent. The level counts the penalties since then.

-- The penalties of the next take: the position of their numbers in a, and whether a dry run starts them.
local penalties, punishes

-- announce reads the penalties of the next take from position i, and returns the position after them. There are four
-- numbers per charge: the position of the key or 0, and first, most and factor of its penalty.
local function announce(i)
	punishes, penalties = a[i+2] == 1, i + 3
	return i + 3 + 4 * a[i+1]
end

-- readpenalty returns until, length, expires and level of a key at now.
local function readpenalty(key)
	local v = call('GET', key)
	if v then
		local until_, length, expires, level = match(v, '^1:p (%d+) (%d+) (%d+) (%d+)$')
		if not until_ then error('the key of a penalty holds no penalty') end
		if now < expires + 0 then return until_ + 0, length + 0, expires + 0, level + 0 end
	end
	return 0, 0, 0, 0
end

-- startpenalty writes the penalty after one of a length and a level, and returns its end and level.
local function startpenalty(key, length, level, first, most, factor)
	local grown = floor(length / 1000) * factor + floor(length % 1000 * factor / 1000)
	length = min(max(grown, first), most)
	local expires = now + length
	if first < most then expires = expires + most end
	call('SETEX', key, seconds(expires - now), format('1:p %d %d %d %d', now + length, length, expires, level + 1))
	return now + length, level + 1
end

-- denies reports whether a penalty denies the take of charge j, which its limit alone admits if own is true. It starts a
-- penalty if the limit denies, and adds the rest of the penalty to the charge's answer.
local function denies(j, e, own, wait, dry)
	local at = penalties + 4 * (j - 1)
	if a[at] == 0 or wait == -2 then return false end
	local key = KEYS[a[at]]
	local ends, length, _, level = readpenalty(key)
	local may = C
	if queued then may = C + debt end
	if now >= ends and not own and wait == -1 and (punishes or not dry) and e.cost > 0 and e.cost <= may then
		ends, level = startpenalty(key, length, level, a[at+1], a[at+2], a[at+3])
	end
	if now >= ends then return false end
	e.penalty = format('!%d,%d', ends - now, level)
	return true
end
