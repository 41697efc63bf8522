-- SPDX-License-Identifier: Apache-2.0
--
-- A faster version of take_one for a single take by the server's clock. It returns the amount, the state after
-- it, and the time, or no row if the take is not admitted. $1 is the key, $2 the cost, $3 the capacity, $4 is n,
-- and $5 the text of the limit. $6 is the lock timeout, which is cheapest to set here.
--
-- The clock is read before the lock. If the wait for the lock exceeds 20 ms, no row is returned, and take_one
-- decides. Until then, the row existed, so the take counts at the start of the wait. A new row is moved to the
-- end of the wait.
--
-- Names and operators are qualified, so that the session's search_path has no effect.
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
