-- SPDX-License-Identifier: Apache-2.0
--
-- The function take_one for a single take by the server's clock, and nothing else: it
-- returns the state after, or no row where the take was not admitted. $1 is the key,
-- $2 the cost, $3 what the bucket holds, $4 and $5 are n and p, and $6 is the most that
-- can be missing. $7 says how long it waits for a lock, and is set where that costs
-- least.
INSERT INTO {table} AS b (key, spent, as_of, unit, full_at)
VALUES (CASE WHEN set_config('lock_timeout', $7::text, true) IS NOT NULL THEN $1::bytea END, $2::bigint,
	{schema}.microseconds(), $5::bigint, {schema}.microseconds() + $2::bigint / $4::bigint + 1)
ON CONFLICT (key) DO UPDATE SET
	spent = {schema}.refilled(b.spent, b.as_of, excluded.as_of, $4, $6) + $2,
	as_of = greatest(excluded.as_of, b.as_of),
	full_at = greatest(excluded.as_of, b.as_of) + ({schema}.refilled(b.spent, b.as_of, excluded.as_of, $4, $6) + $2) / $4 + 1
WHERE b.unit = $5 AND {schema}.refilled(b.spent, b.as_of, excluded.as_of, $4, $6) + $2 <= $3::bigint
RETURNING {schema}.microseconds(), b.spent, b.as_of
