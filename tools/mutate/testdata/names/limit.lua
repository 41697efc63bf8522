-- SPDX-License-Identifier: Apache-2.0
-- spent < 1
local floor, max, min = math.floor, math.max, math.min
--[[ a long comment: 1 + 1
]]
local function spend(spent, cost) -- 0 or 1
	if spent + 0 + cost > 9 and not full(spent) then return -1 end
	return floor(max(spent, 0x0)) .. 'it\'s 1 < 2' .. [[1 + 1]], #spent - 1
end

return spend(KEYS[1], 2) == 0
