-- SPDX-License-Identifier: Apache-2.0
--
-- A faster version of take_and_settle for one call by the server's clock. It returns the amount, the state after it, and the
-- time. It returns no row if take_and_settle has to decide. $1 is the key, $2 the amount, and $3 the await.
-- $4 is the cost of a canceled take, $5 the part to cancel, and $6 the instant of that take. $7 is the text of the limit, $8 the
-- capacity, and $9 is n. $10 is the lock timeout.
--
-- The clock is read before the lock, as in take_alone. A cancellation without a row has nothing to do. It leaves a row
-- without spent tokens, because the plan of this INSERT needs no statistics.
INSERT INTO {table} AS b (key, lim, spent, as_of, full_at, took)
VALUES (CASE WHEN pg_catalog.set_config('lock_timeout', $10::pg_catalog.text, true) IS NOT NULL THEN $1::pg_catalog.bytea END, $7::pg_catalog.text, $2::pg_catalog.int8,
	{schema}.microseconds(), {schema}.full_after({schema}.microseconds(), $2, $9), -1)
ON CONFLICT (key) DO UPDATE SET (spent, as_of, full_at, took, others) = (SELECT (x.r).spent, (x.r).as_of, (x.r).due, 0, (x.r).others
	FROM (SELECT {schema}.awaited_or_settled(b.lim, b.spent, b.as_of, b.others, greatest(excluded.as_of, b.as_of), $2,
		$3::pg_catalog.int8, $5::pg_catalog.int8, $4::pg_catalog.int8, $6::pg_catalog.int8, $9) AS r OFFSET 0) x)
WHERE b.lim OPERATOR(pg_catalog.=) $7 AND {schema}.awaits_only(b.lim, b.others)
	AND ({schema}.refilled(b.spent, b.as_of, excluded.as_of, $9) OPERATOR(pg_catalog.+) $2) OPERATOR(pg_catalog.<=) $8::pg_catalog.int8
	AND {schema}.microseconds() OPERATOR(pg_catalog.<) (excluded.as_of OPERATOR(pg_catalog.+) 20000)
RETURNING $2::pg_catalog.int8, b.spent,
	CASE WHEN b.took OPERATOR(pg_catalog.<) 0 AND {schema}.microseconds() OPERATOR(pg_catalog.>) (b.as_of OPERATOR(pg_catalog.+) 1000)
		THEN {table}_late(b.key) ELSE b.as_of END,
	{schema}.microseconds()
