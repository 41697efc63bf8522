-- SPDX-License-Identifier: Apache-2.0
--
-- Part 3 of the script, after take_settle.lua: calendars. Scripts have no time zones, so the call carries
-- windows. The script computes the state of each calendar account in its current window when it reads a row. All later
-- functions see a bucket that does not refill.

-- Each calendar has an argument: the text of its limit, the longest wait of a reservation, and the starts of windows in
-- ascending order. The last start is the end of the last window.
local windows, reaches = {}, {}
for j = #ARGV - a[5] + 1, #ARGV do
	local name, reach, list = match(ARGV[j], '^(%S+) (%d+)(.*)$')
	local times = {}
	for t in string.gmatch(list, '%-?%d+') do times[#times+1] = t + 0 end
	windows[name], reaches[name] = times, reach + 0
end

-- Pairs of a limit and an instant whose windows the call does not carry, and the last instant of any account.
local missing, newest = {}, now

local function needwindow(name, t)
	missing[#missing+1] = format('%s %d', name, t)
end

-- checkwindows checks that all calendars of the call have windows until they can be needed.
local function checkwindows()
	for name, times in pairs(windows) do
		if not (times[1] and times[1] <= now and times[#times] > newest + reaches[name]) then needwindow(name, newest) end
	end
end

-- The starts of the selected limit, if it has a calendar: see pick.
local calendar

-- windowof returns the position of the window that contains t, or 0.
local function windowof(t)
	local i = #calendar
	while i > 0 and calendar[i] > t do i = i - 1 end
	return i
end

-- arrival returns the start of the window that is this many windows after t. If the call does not carry it, the result is
-- later: no windows exceed their mean length of p by four days together.
local function arrival(times, t, p)
	return calendar[windowof(t) + times] or t + times * p + 345600000000
end

-- passed returns the number of windows that start after t, up to at.
local function passed(t, at)
	local i, j = windowof(t), windowof(at)
	return i > 0 and j - i or 9007199254740991
end
