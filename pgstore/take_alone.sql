-- SPDX-License-Identifier: Apache-2.0
--
-- The function take_one for a single take by the server's clock, and nothing else: it
-- returns the amount, the state after, and the time, or no row where the take was not
-- admitted. $1 is the key, $2 the cost, $3 what the bucket holds, $4 is n, and $5 the
-- limit as a row has it. $6 is lock_timeout, which is set where that costs least.
--
-- The clock is read before the lock. Where the wait for the lock is longer than 20 ms, no
-- row is returned, and take_one decides. Until then the row has been there, so the take
-- counts as of the beginning of the wait. A row that is new is moved to the end of it.
--
-- Names and operators are qualified: the session's search_path makes no difference.
INSERT INTO {table} AS b (key, lim, spent, as_of, full_at, took)
VALUES (CASE WHEN pg_catalog.set_config('lock_timeout', $6::pg_catalog.text, true) IS NOT NULL THEN $1::pg_catalog.bytea END, $5::pg_catalog.text, $2::pg_catalog.int8,
	{schema}.microseconds(), {schema}.full_after({schema}.microseconds(), $2, $4), -1)
ON CONFLICT (key) DO UPDATE SET
	spent = {schema}.refilled(b.spent, b.as_of, excluded.as_of, $4) OPERATOR(pg_catalog.+) $2,
	as_of = greatest(excluded.as_of, b.as_of),
	full_at = {schema}.full_after(greatest(excluded.as_of, b.as_of),
		{schema}.refilled(b.spent, b.as_of, excluded.as_of, $4) OPERATOR(pg_catalog.+) $2, $4),
	took = 0
WHERE b.lim OPERATOR(pg_catalog.=) $5 AND b.others IS NULL
	AND ({schema}.refilled(b.spent, b.as_of, excluded.as_of, $4) OPERATOR(pg_catalog.+) $2) OPERATOR(pg_catalog.<=) $3
	AND {schema}.microseconds() OPERATOR(pg_catalog.<) (excluded.as_of OPERATOR(pg_catalog.+) 20000)
RETURNING $2::pg_catalog.int8, b.spent,
	CASE WHEN b.took OPERATOR(pg_catalog.<) 0 AND {schema}.microseconds() OPERATOR(pg_catalog.>) (b.as_of OPERATOR(pg_catalog.+) 1000)
		THEN {table}_late(b.key) ELSE b.as_of END,
	{schema}.microseconds()
