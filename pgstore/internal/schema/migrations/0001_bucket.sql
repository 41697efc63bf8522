-- SPDX-License-Identifier: Apache-2.0
--
-- Buckets, and all that is done to them. The arithmetic is that of package bucket,
-- in bigint. What follows the line of dashes is there twice: for {schema}.bucket,
-- which is unlogged, and for {schema}.bucket_durable, which is not.
--
-- A bucket misses spent/unit thousandths of a token at as_of, microseconds since
-- 1970. A bucket that has no row is full, and so is one that misses nothing. Kinds
-- of states are told apart by their unit:
--
--   above 0   a token bucket. The unit is that of its limit
--   below 0   a sliding window that is -unit microseconds long and begins at as_of.
--             Of what was spent in it and in the one before, prev is the part of
--             that
--   0         a sliding log: log has its entries, an instant and a cost each, spent
--             is their sum and as_of the last of the instants; or a row that has
--             been made to be locked, and not been written yet
--
-- full_at is when the bucket is full if nothing more is taken: then its row may go.
-- No index has it, or anything else that a take changes: so updates stay within the
-- page (HOT) and leave the index alone.
--
-- Locks are taken in one pass over the keys in their order, by INSERT … ON CONFLICT:
-- whether a row is there or not, whoever is second waits for it there. So two calls
-- never wait for each other. The plan of such an INSERT needs no statistics either.

CREATE FUNCTION {schema}.microseconds() RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
	SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
$$;

-- ceiling is x / y, rounded up, for x >= 0.
CREATE FUNCTION {schema}.ceiling(x bigint, y bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
	SELECT CASE WHEN x = 0 THEN 0 ELSE (x - 1) / y + 1 END
$$;

-- refilled is what a token bucket of this unit misses at clock; most is the most
-- that it can.
CREATE FUNCTION {schema}.refilled(spent bigint, as_of bigint, clock bigint, n bigint, most bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
	SELECT CASE WHEN clock - as_of > spent / n THEN 0
		ELSE least(spent - greatest(clock - as_of, 0) * n, most) END
$$;

-- into is how far a window of length p has come, in 4096ths: two digits to the base
-- of 64, as the product may be more than a bigint holds.
CREATE FUNCTION {schema}.into(elapsed bigint, p bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
	SELECT elapsed * 64 / p * 64 + elapsed * 64 % p * 64 / p
$$;

-- step is the beginning of the interval that t is in.
CREATE FUNCTION {schema}.step(t bigint, start bigint, p bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
	SELECT t - ((t - start) % p + p) % p
$$;

-- A rate_limit is a limit, as package bucket has it: of algorithm 0 (continuous), 1
-- (stepped), 2 (sliding window) or 3 (sliding log), with capacity c, refilled by n
-- every p microseconds, with so much debt at most.
CREATE TYPE {schema}.rate_limit AS (
	algorithm bigint, c bigint, n bigint, p bigint, debt bigint, start bigint, first boolean, queued boolean);

-- look is what a bucket that is no log misses at clock, in the limit's unit (s), the
-- instant that is true of (t), and the part of a window that is before this one (w).
CREATE FUNCTION {schema}.look(l {schema}.rate_limit, clock bigint,
	spent bigint, as_of bigint, unit bigint, prev bigint, OUT s bigint, OUT t bigint, OUT w bigint)
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	p bigint := l.p;
	n bigint := l.n;
	begun bigint := as_of;
BEGIN
	t := greatest(clock, as_of);
	w := 0;
	s := spent;
	IF l.algorithm = 0 THEN
		IF s = 0 THEN RETURN; END IF;
		IF unit <> p AND (unit <> 0 OR p <> 1) THEN s := least({schema}.ceiling(s, greatest(unit, 1)), l.c) * p; END IF;
		s := CASE WHEN t - as_of > s / n THEN 0 ELSE least(s - (t - as_of) * n, (l.c + l.debt) * p) END;
	ELSIF l.algorithm = 1 THEN
		IF unit > 1 OR unit < 0 THEN s := least({schema}.ceiling(s, greatest(unit, 1)), l.c); END IF;
		IF l.first THEN
			IF s = 0 THEN RETURN; END IF;
			begun := t - (t - as_of) % p;
			IF (begun - as_of) / p >= {schema}.ceiling(s, n) THEN s := 0; RETURN; END IF;
			t := begun;
			begun := as_of;
		ELSE
			t := {schema}.step(t, l.start, p);
			IF s = 0 THEN RETURN; END IF;
			begun := {schema}.step(as_of, l.start, p);
			IF begun < as_of THEN begun := begun + p; END IF;
			t := greatest(t, begun);
			IF (t - begun) / p >= {schema}.ceiling(s, n) THEN s := 0; RETURN; END IF;
		END IF;
		s := least(s - (t - begun) / p * n, l.c + l.debt);
	ELSE
		s := s - prev; -- of this window
		w := prev;
		IF unit <> -p THEN
			s := least({schema}.ceiling(spent, greatest(unit, 1)), l.c);
			w := 0;
			begun := as_of - as_of % p;
		END IF;
		CASE (t - begun) / p
		WHEN 0 THEN s := s + w; t := begun;
		WHEN 1 THEN w := s; t := begun + p;
		ELSE s := 0; w := 0; t := t - t % p;
		END CASE;
	END IF;
END $$;

-- admits says whether cost may be spent of a bucket that misses s at t, within a wait
-- of so many microseconds; -1 is a plain take, and -2 whatever can be owed.
CREATE FUNCTION {schema}.admits(l {schema}.rate_limit, clock bigint,
	s bigint, t bigint, w bigint, cost bigint, wait bigint) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	room bigint := l.c - cost;
	loan bigint;
BEGIN
	IF l.algorithm = 2 THEN
		s := s - w;
		IF wait = -2 AND cost <= l.c + l.debt THEN RETURN s + cost <= l.c + l.debt; END IF;
		room := room - s;
		RETURN cost <= l.c AND room >= 0 AND
			(w <= room OR greatest(4096 - room * 4096 / w, 0) <= {schema}.into(greatest(clock - t, 0), l.p));
	END IF;
	IF room < -l.debt THEN RETURN false; END IF;
	IF wait = -1 THEN wait := CASE WHEN l.queued THEN -2 ELSE 0 END; END IF;
	IF l.algorithm = 1 THEN
		IF wait = -2 THEN RETURN room + l.debt >= 0 AND s <= room + l.debt; END IF;
		IF room < 0 THEN RETURN false; END IF;
		IF s <= room THEN RETURN true; END IF;
		IF wait > 0 AND s > room + l.debt THEN RETURN false; END IF;
		RETURN {schema}.ceiling(s - room, l.n) <= (wait - least(t - clock, 0)) / l.p;
	END IF;
	loan := l.debt * l.p;
	IF wait >= 0 AND wait < {schema}.ceiling(loan, l.n) THEN loan := wait * l.n; END IF;
	RETURN room * l.p + loan >= 0 AND s <= room * l.p + loan;
END $$;

-- remaining is what a bucket holds that misses s at t.
CREATE FUNCTION {schema}.remaining(l {schema}.rate_limit, clock bigint, s bigint, t bigint, w bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
	SELECT greatest(0, CASE l.algorithm
		WHEN 0 THEN l.c - {schema}.ceiling(s, l.p)
		WHEN 1 THEN l.c - s
		ELSE l.c - (s - w) - {schema}.ceiling(w * (4096 - {schema}.into(greatest(clock - t, 0), l.p)), 4096) END)
$$;

-- full_at is when a bucket is full that misses s at t, but no later than 36 000 years
-- after that.
CREATE FUNCTION {schema}.full_at(l {schema}.rate_limit, s bigint, t bigint, w bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
	SELECT t + CASE WHEN s = 0 THEN 0 ELSE CASE l.algorithm
		WHEN 0 THEN {schema}.ceiling(s, l.n)
		WHEN 1 THEN least({schema}.ceiling(s, l.n), (1::bigint << 60) / l.p) * l.p
		ELSE CASE WHEN s > w THEN 2 * l.p ELSE l.p END END END
$$;

-- A sliding log is an array of instants and costs, oldest first: t1, c1, t2, c2 …
CREATE TYPE {schema}.sliding_log AS (entries bigint[]);

CREATE FUNCTION {schema}.log_sum(g bigint[]) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
	SELECT coalesce(sum(c), 0)::bigint FROM unnest(g) WITH ORDINALITY AS e (c, i) WHERE i % 2 = 0
$$;

-- log_opened is the log of a row, which may be that of another algorithm, and its last
-- instant, 0 where it is empty.
CREATE FUNCTION {schema}.log_opened(l {schema}.rate_limit, entries bigint[], spent bigint, as_of bigint, unit bigint, OUT g bigint[], OUT t bigint)
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
	IF entries IS NOT NULL THEN g := entries;
	ELSIF spent = 0 THEN g := '{}';
	ELSE g := ARRAY[as_of, least({schema}.ceiling(spent, greatest(unit, 1)), l.c)]; END IF;
	t := coalesce(g[cardinality(g) - 1], 0);
END $$;

-- log_live is how many entries have left the window that ends at t, and what the
-- others add up to.
CREATE FUNCTION {schema}.log_live(l {schema}.rate_limit, g bigint[], t bigint, OUT gone int, OUT sum bigint)
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	count CONSTANT int := cardinality(g) / 2;
BEGIN
	gone := 0;
	WHILE gone < count AND g[2 * gone + 1] <= t - l.p LOOP gone := gone + 1; END LOOP;
	sum := {schema}.log_sum(CASE WHEN gone = 0 THEN g ELSE g[2 * gone + 1 :] END);
END $$;

-- log_wait is how long until a log of which gone entries have left, and the others add
-- up to sum, admits cost: -1 is never.
CREATE FUNCTION {schema}.log_wait(l {schema}.rate_limit, g bigint[], gone int, sum bigint, clock bigint, cost bigint, wait bigint) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	room bigint := l.c - cost;
	i int := gone;
BEGIN
	IF cost > l.c + l.debt OR wait <> -2 AND cost > l.c THEN RETURN -1; END IF;
	IF wait = -2 THEN room := room + l.debt; END IF;
	IF sum <= room THEN RETURN 0; END IF;
	WHILE sum > room LOOP
		sum := sum - g[2 * i + 2];
		i := i + 1;
	END LOOP;
	RETURN g[2 * i - 1] + l.p - clock;
END $$;

-- log_spent is the log with cost, without those that have left, its sum and its last
-- instant. What is spent at one instant is one entry, and of too many the last two
-- are.
CREATE FUNCTION {schema}.log_spent(l {schema}.rate_limit, g bigint[], gone int, at bigint, cost bigint, OUT h bigint[], OUT sum bigint, OUT t bigint)
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	size int;
BEGIN
	h := CASE WHEN gone = 0 THEN g ELSE g[2 * gone + 1 :] END;
	size := cardinality(h);
	t := at;
	IF cost = 0 THEN
		IF size > 0 THEN t := h[size - 1]; END IF;
	ELSIF size >= 20000 OR size > 0 AND h[size - 1] = at THEN
		h[size - 1] := at;
		h[size] := h[size] + cost;
	ELSE
		h := h || ARRAY[at, cost];
	END IF;
	sum := {schema}.log_sum(h);
END $$;

-- log_refunded is the log without its oldest costs.
CREATE FUNCTION {schema}.log_refunded(l {schema}.rate_limit, g bigint[], at bigint, back bigint, OUT h bigint[], OUT sum bigint)
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	i int;
BEGIN
	SELECT * FROM {schema}.log_live(l, g, at) INTO i, sum;
	IF back >= sum THEN
		h := '{}'; sum := 0;
		RETURN;
	END IF;
	sum := sum - back;
	WHILE g[2 * i + 2] <= back LOOP
		back := back - g[2 * i + 2];
		i := i + 1;
	END LOOP;
	h := g[2 * i + 1 :];
	h[2] := h[2] - back;
END $$;

-- From here on, what there is for each of the two tables of buckets.
DO $both$
DECLARE
	name text;
BEGIN
FOREACH name IN ARRAY ARRAY['bucket', 'bucket_durable'] LOOP
EXECUTE replace(replace($each$

CREATE {unlogged} TABLE {schema}.{bucket} (
	spent   bigint NOT NULL,
	as_of   bigint NOT NULL,
	unit    bigint NOT NULL,
	full_at bigint NOT NULL,
	took    bigint NOT NULL DEFAULT 0, -- scratch of take_many: what the last call took, or which limit it was
	prev    bigint,
	log     bigint[],
	key     bytea PRIMARY KEY
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000,
	autovacuum_vacuum_insert_scale_factor = 0.2, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE {schema}.{bucket} ALTER log SET STORAGE EXTERNAL; -- it changes too often to be compressed

-- Takes that are remembered by what they are called: what was answered, and the
-- limits that held then.
CREATE {unlogged} TABLE {schema}.{bucket}_memory (
	id     bytea PRIMARY KEY,
	at     bigint NOT NULL, -- by the clock of the take
	until  bigint NOT NULL, -- by the server's: then the row may go
	answer bigint[] NOT NULL,
	limits text[] NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- states returns the rows that there are for keys, by their number. It looks them up
-- one by one, whatever the planner believes the size of the table to be.
CREATE FUNCTION {schema}.{bucket}_states(keys bytea[])
RETURNS TABLE (i bigint, spent bigint, as_of bigint, unit bigint, prev bigint, log bigint[])
LANGUAGE plpgsql STABLE ROWS 10
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_bitmapscan = off SET jit = off AS $$
#variable_conflict use_column
BEGIN
	RETURN QUERY SELECT k.i, b.spent, b.as_of, b.unit, b.prev, b.log
		FROM unnest(keys) WITH ORDINALITY AS k (key, i) JOIN {schema}.{bucket} b ON b.key = k.key;
END $$;

-- take_one takes amount or the part of it that there is, in whole costs, from one
-- token bucket. All numbers are in units of 1/p thousandth: c is what the bucket
-- holds, and most the most that it can miss. took says how much it was, and the
-- state is the one after; 0 is a denial, by the state that is returned. Where it is
-- none of this unit, or nothing could be decided, took is -1. A clock below 0 is the
-- server's. With look, it looks first whether there is anything to take, for when
-- that is not likely: then nothing is locked.
CREATE FUNCTION {schema}.{bucket}_take_one(INOUT clock bigint, k bytea, amount bigint, c bigint, n bigint, p bigint,
	most bigint, cost bigint, look boolean, OUT took bigint, OUT spent bigint, OUT as_of bigint, OUT unit bigint)
LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
DECLARE
	shift bigint := 0;
BEGIN
	IF clock < 0 THEN clock := {schema}.microseconds();
	ELSE shift := {schema}.microseconds() - clock + 3600000000; END IF;
	FOR try IN 1..3 LOOP
		IF look OR try > 1 THEN
			SELECT s.spent, s.as_of, s.unit FROM {schema}.{bucket}_states(ARRAY[k]) s INTO spent, as_of, unit;
			IF FOUND THEN
				took := -1;
				IF unit <> p THEN RETURN; END IF;
				IF {schema}.refilled(spent, as_of, clock, n, most) + cost > c THEN
					took := 0;
					RETURN;
				END IF;
			END IF;
		END IF;
		INSERT INTO {schema}.{bucket} AS b (key, spent, as_of, unit, full_at, took)
			VALUES (k, amount, clock, p, clock + amount / n + 1 + shift, amount)
			ON CONFLICT (key) DO UPDATE SET
				spent = {schema}.refilled(b.spent, b.as_of, clock, n, most) +
					least(amount, (c - {schema}.refilled(b.spent, b.as_of, clock, n, most)) / cost * cost),
				as_of = greatest(clock, b.as_of),
				full_at = greatest(clock, b.as_of) + ({schema}.refilled(b.spent, b.as_of, clock, n, most) + amount) / n + 1 + shift,
				took = least(amount, (c - {schema}.refilled(b.spent, b.as_of, clock, n, most)) / cost * cost)
			WHERE b.unit = p AND {schema}.refilled(b.spent, b.as_of, clock, n, most) + cost <= c
			RETURNING b.took, b.spent, b.as_of, b.unit INTO took, spent, as_of, unit;
		IF FOUND THEN RETURN; END IF;
	END LOOP;
	took := -1;
END $$;

-- take_many is take_one for any number of keys in ascending order. Each has an
-- amount, and the number of its limit among c, n, p, most and cost. It returns a row
-- for each key that it could decide, by its number: took is 0 for those denied.
CREATE FUNCTION {schema}.{bucket}_take_many(clock bigint, keys bytea[], which bigint[], amounts bigint[],
	c bigint[], n bigint[], p bigint[], most bigint[], cost bigint[], look boolean)
RETURNS TABLE (now bigint, key bytea, took bigint, spent bigint, as_of bigint, unit bigint)
LANGUAGE plpgsql VOLATILE AS $$
#variable_conflict use_column
DECLARE
	shift bigint := 0;
	done bigint;
BEGIN
	IF clock < 0 THEN clock := {schema}.microseconds();
	ELSE shift := {schema}.microseconds() - clock + 3600000000; END IF;
	IF look THEN
		RETURN QUERY SELECT clock, keys[s.i], 0::bigint, s.spent, s.as_of, s.unit FROM {schema}.{bucket}_states(keys) s
			WHERE s.unit <> p[which[s.i]] OR {schema}.refilled(s.spent, s.as_of, clock, n[which[s.i]], most[which[s.i]]) + cost[which[s.i]] > c[which[s.i]];
		SELECT array_agg(k.key), array_agg(k.which), array_agg(k.amount)
			FROM unnest(keys, which, amounts) WITH ORDINALITY AS k (key, which, amount, i)
			LEFT JOIN {schema}.{bucket}_states(keys) s ON s.i = k.i
			WHERE s.i IS NULL OR s.unit = p[k.which] AND
				{schema}.refilled(s.spent, s.as_of, clock, n[k.which], most[k.which]) + cost[k.which] <= c[k.which]
			INTO keys, which, amounts;
		IF keys IS NULL THEN RETURN; END IF;
	END IF;
	-- took brings the number of the limit; a row that is new keeps it, as its amount
	-- is what is missing.
	RETURN QUERY INSERT INTO {schema}.{bucket} AS b (key, spent, as_of, unit, full_at, took)
		SELECT k.key, k.amount, clock, p[k.which], clock + k.amount / n[k.which] + 1 + shift, k.which - 1000000
		FROM unnest(keys, which, amounts) AS k (key, which, amount)
		ON CONFLICT (key) DO UPDATE SET
			as_of = greatest(clock, b.as_of),
			(spent, took, full_at) = (SELECT z.s + z.took, z.took, greatest(clock, b.as_of) + (z.s + z.took) / z.n + 1 + shift
				FROM (SELECT y.s, y.n, least(excluded.spent, (y.c - y.s) / y.cost * y.cost) AS took
				FROM (SELECT x.n, x.c, x.cost, {schema}.refilled(b.spent, b.as_of, clock, x.n, x.most) AS s
				FROM (SELECT c[w.w] AS c, n[w.w] AS n, most[w.w] AS most, cost[w.w] AS cost
				FROM (SELECT excluded.took + 1000000 AS w OFFSET 0) w OFFSET 0) x OFFSET 0) y OFFSET 0) z)
		WHERE b.unit = excluded.unit AND
			{schema}.refilled(b.spent, b.as_of, clock, n[excluded.took + 1000000], most[excluded.took + 1000000]) + cost[excluded.took + 1000000] <= c[excluded.took + 1000000]
		RETURNING clock, b.key, CASE WHEN b.took < 0 THEN b.spent ELSE b.took END, b.spent, b.as_of, b.unit;
	GET DIAGNOSTICS done = ROW_COUNT;
	IF done < cardinality(keys) THEN -- by the states that there are now; what was taken is shown by its first row
		RETURN QUERY SELECT clock, keys[s.i], 0::bigint, s.spent, s.as_of, s.unit FROM {schema}.{bucket}_states(keys) s
			WHERE s.unit <> p[which[s.i]] OR {schema}.refilled(s.spent, s.as_of, clock, n[which[s.i]], most[which[s.i]]) + cost[which[s.i]] > c[which[s.i]];
	END IF;
END $$;

-- forget removes buckets, in the order of their keys, which makes them full.
CREATE FUNCTION {schema}.{bucket}_forget(keys bytea[]) RETURNS void
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off AS $$
DECLARE
	k bytea;
BEGIN
	FOREACH k IN ARRAY keys LOOP
		DELETE FROM {schema}.{bucket} b WHERE b.key = k;
	END LOOP;
END $$;

-- take does all that takes and refunds can be, one after another in one step. keys
-- are in ascending order. A limit is eight numbers: those of a rate_limit. Numbers
-- that refer to keys, limits and ids count from 1. The program is, for each operation,
--
--   1, flags (1: a dry run, 2: up to), wait as admits has it, the id that it is
--      remembered by or 0, how many charges, and for each: key, limit, cost
--   2, how many charges, and for each: key, limit, what is given back
--
-- names are those of the limits of operations that have an id, in their order. The
-- answers are, for each take, 1 (taken), 0 (denied) or 2 (it was taken before: limits
-- has what its limits were), the time, and for each charge what it cost and five
-- numbers:
--
--   0, spent, as_of, unit, prev   the state before; with an id that was not denied,
--                                 the one after
--   1, sum, behind, wait, 0       of a log: what it counts, by how much its instant is
--                                 ahead of the clock, and the wait, -1 being never
--
-- look is that of take_one.
CREATE FUNCTION {schema}.{bucket}_take(INOUT clock bigint, keys bytea[], numbers bigint[], program bigint[],
	ids bytea[], names text[], look boolean, OUT answers bigint[], OUT limits text[])
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off AS $$ -- of the memory, which may have been empty when this was planned
#variable_conflict use_column
DECLARE
	shift bigint := 0;
	size CONSTANT int := cardinality(program);
	-- The states, by the number of their key, and which are to be written.
	spents bigint[]; as_ofs bigint[]; units bigint[]; prevs bigint[]; dues bigint[]; dirty boolean[];
	logs {schema}.sliding_log[];
	fresh bytea[]; -- rows made to be locked
	writes boolean := false;
	r record;
	rates {schema}.rate_limit[];
	l {schema}.rate_limit;
	i int; j int; k int; first int; charges int; named int;
	memo int; flags bigint; wait bigint; cost bigint; room bigint; due bigint;
	ok boolean;
	s bigint; t bigint; w bigint;
	costs bigint[]; ss bigint[]; ts bigint[]; ws bigint[]; waits bigint[];
	g bigint[]; gone int; sum bigint; back bigint;
	answer bigint[];
BEGIN
	IF clock < 0 THEN clock := {schema}.microseconds();
	ELSE shift := {schema}.microseconds() - clock + 3600000000; END IF;
	FOR i IN 1 .. cardinality(numbers) / 8 LOOP
		j := 8 * i;
		rates[i] := ROW(numbers[j - 7], numbers[j - 6], numbers[j - 5], numbers[j - 4], numbers[j - 3], numbers[j - 2],
			numbers[j - 1] = 1, numbers[j] = 1);
	END LOOP;
	-- The first time without locks: where that comes to nothing that is to be written,
	-- it is the answer.
	FOR locked IN CASE WHEN look THEN 0 ELSE 1 END .. 1 LOOP
		IF locked = 1 THEN
			WITH made AS (
				INSERT INTO {schema}.{bucket} AS b (key, spent, as_of, unit, full_at)
					SELECT key, 0, 0, 0, clock + shift FROM unnest(keys) AS key
					ON CONFLICT (key) DO UPDATE SET took = 0 WHERE false
					RETURNING b.key)
			SELECT array_agg(key) FROM made INTO fresh;
		END IF;
		spents := array_fill(0::bigint, ARRAY[cardinality(keys)]);
		as_ofs := spents; units := spents; prevs := spents; dues := spents;
		dirty := array_fill(false, ARRAY[cardinality(keys)]);
		logs := array_fill(NULL::{schema}.sliding_log, ARRAY[cardinality(keys)]);
		FOR r IN SELECT * FROM {schema}.{bucket}_states(keys) LOOP
			k := r.i;
			spents[k] := r.spent; as_ofs[k] := r.as_of; units[k] := r.unit; prevs[k] := coalesce(r.prev, 0);
			IF r.log IS NOT NULL THEN logs[k] := ROW(r.log); END IF;
		END LOOP;
		answers := '{}'; limits := '{}'; writes := false;
		i := 1; named := 0;
		WHILE i <= size LOOP
			IF program[i] = 2 THEN
				charges := program[i + 1];
				first := i + 2;
				i := first + 3 * charges;
				FOR j IN 0 .. charges - 1 LOOP
					k := program[first + 3 * j]; l := rates[program[first + 3 * j + 1]]; back := program[first + 3 * j + 2];
					CONTINUE WHEN spents[k] = 0 OR back = 0;
					IF l.algorithm = 3 THEN
						SELECT * FROM {schema}.log_opened(l, (logs[k]).entries, spents[k], as_ofs[k], units[k]) INTO g, t;
						SELECT * FROM {schema}.log_refunded(l, g, greatest(clock, t), back) INTO g, sum;
						logs[k] := ROW(g);
						s := sum; w := 0;
						due := CASE WHEN s = 0 THEN clock ELSE t + l.p END;
						t := greatest(t, CASE WHEN s = 0 THEN clock ELSE 0 END);
					ELSE
						SELECT * FROM {schema}.look(l, clock, spents[k], as_ofs[k], units[k], prevs[k]) INTO s, t, w;
						IF l.algorithm = 2 THEN -- this window first
							sum := least(back, s - w);
							s := s - sum;
							sum := least(back - sum, w);
							w := w - sum; s := s - sum;
						ELSE
							sum := CASE l.algorithm WHEN 0 THEN l.p ELSE 1 END;
							s := CASE WHEN back >= {schema}.ceiling(s, sum) THEN 0 ELSE s - back * sum END;
						END IF;
						logs[k] := NULL;
						due := {schema}.full_at(l, s, t, w);
					END IF;
					spents[k] := s; as_ofs[k] := t; prevs[k] := w; dues[k] := due;
					units[k] := CASE l.algorithm WHEN 0 THEN l.p WHEN 1 THEN 1 WHEN 2 THEN -l.p ELSE 0 END;
					dirty[k] := true; writes := true;
				END LOOP;
				CONTINUE;
			END IF;

			flags := program[i + 1]; wait := program[i + 2]; memo := program[i + 3]; charges := program[i + 4];
			first := i + 5;
			i := first + 3 * charges;
			IF memo > 0 THEN
				named := named + charges;
				SELECT m.answer, m.limits FROM {schema}.{bucket}_memory m
					WHERE m.id = ids[memo] AND clock - m.at < 120000000 INTO r;
				IF FOUND THEN
					answers := answers || r.answer;
					limits := limits || r.limits;
					CONTINUE;
				END IF;
			END IF;
			room := 9007199254740991;
			FOR j IN 0 .. charges - 1 LOOP
				k := program[first + 3 * j]; l := rates[program[first + 3 * j + 1]];
				IF l.algorithm = 3 THEN
					SELECT * FROM {schema}.log_opened(l, (logs[k]).entries, spents[k], as_ofs[k], units[k]) INTO g, t;
					SELECT * FROM {schema}.log_live(l, g, greatest(clock, t)) INTO gone, s;
					logs[k] := ROW(g);
					w := gone;
					IF flags >= 2 THEN room := least(room, greatest(l.c - s, 0)); END IF;
				ELSIF l.algorithm = 0 AND units[k] = l.p THEN -- most are, and this is look
					t := as_ofs[k]; s := spents[k]; w := 0;
					IF clock > t THEN
						s := CASE WHEN clock - t > s / l.n THEN 0 ELSE least(s - (clock - t) * l.n, (l.c + l.debt) * l.p) END;
						t := clock;
					ELSE
						s := least(s, (l.c + l.debt) * l.p);
					END IF;
					IF flags >= 2 THEN room := least(room, greatest(l.c - {schema}.ceiling(s, l.p), 0)); END IF;
				ELSE
					SELECT * FROM {schema}.look(l, clock, spents[k], as_ofs[k], units[k], prevs[k]) INTO s, t, w;
					IF flags >= 2 THEN room := least(room, {schema}.remaining(l, clock, s, t, w)); END IF;
				END IF;
				ss[j] := s; ts[j] := t; ws[j] := w;
			END LOOP;
			ok := true;
			FOR j IN 0 .. charges - 1 LOOP
				k := program[first + 3 * j]; l := rates[program[first + 3 * j + 1]]; cost := program[first + 3 * j + 2];
				IF flags >= 2 AND cost > room THEN cost := least(cost, greatest(room - room % 1000, 1000)); END IF;
				costs[j] := cost;
				IF l.algorithm = 3 THEN
					waits[j] := {schema}.log_wait(l, (logs[k]).entries, ws[j]::int, ss[j], clock, cost, wait);
					ok := ok AND waits[j] = 0;
				ELSIF l.algorithm = 0 AND wait = -1 AND NOT l.queued THEN
					ok := ok AND cost <= l.c AND ss[j] <= (l.c - cost) * l.p;
				ELSE
					ok := ok AND {schema}.admits(l, clock, ss[j], ts[j], ws[j], cost, wait);
				END IF;
			END LOOP;
			answer := ARRAY[CASE WHEN ok THEN 1 ELSE 0 END, clock];
			FOR j IN 0 .. charges - 1 LOOP
				k := program[first + 3 * j]; l := rates[program[first + 3 * j + 1]]; cost := costs[j];
				IF l.algorithm = 3 THEN
					IF ok AND flags % 2 = 0 THEN
						SELECT * FROM {schema}.log_spent(l, (logs[k]).entries, ws[j]::int, greatest(clock, ts[j]), cost) INTO g, sum, t;
						logs[k] := ROW(g);
						spents[k] := sum; as_ofs[k] := t; units[k] := 0; prevs[k] := 0;
						dues[k] := CASE WHEN sum = 0 THEN t ELSE t + l.p END;
						dirty[k] := true; writes := true;
						answer := answer || ARRAY[cost, 1, sum, t - clock, 0, 0];
					ELSE
						answer := answer || ARRAY[cost, 1, ss[j],
							CASE WHEN ss[j] > 0 THEN ts[j] ELSE greatest(ts[j], clock) END - clock, waits[j], 0];
					END IF;
				ELSE
					IF NOT ok OR flags % 2 = 1 OR memo = 0 THEN
						answer := answer || ARRAY[cost, 0, spents[k], as_ofs[k], units[k], prevs[k]];
					END IF;
					IF ok AND flags % 2 = 0 THEN
						s := ss[j] + cost * CASE l.algorithm WHEN 0 THEN l.p ELSE 1 END;
						spents[k] := s; as_ofs[k] := ts[j]; prevs[k] := ws[j];
						units[k] := CASE l.algorithm WHEN 0 THEN l.p WHEN 1 THEN 1 ELSE -l.p END;
						logs[k] := NULL;
						dues[k] := CASE WHEN l.algorithm = 0 THEN ts[j] + s / l.n + 1 ELSE {schema}.full_at(l, s, ts[j], ws[j]) END;
						dirty[k] := true; writes := true;
						IF memo > 0 THEN answer := answer || ARRAY[cost, 0, spents[k], as_ofs[k], units[k], prevs[k]]; END IF;
					END IF;
				END IF;
			END LOOP;
			answers := answers || answer;
			IF memo > 0 AND ok AND locked = 1 THEN
				answer[1] := 2;
				INSERT INTO {schema}.{bucket}_memory AS m (id, at, until, answer, limits)
					VALUES (ids[memo], clock, clock + shift + 120000000, answer, names[named - charges + 1 : named])
					ON CONFLICT (id) DO UPDATE SET at = excluded.at, until = excluded.until, answer = excluded.answer, limits = excluded.limits;
			END IF;
		END LOOP;
		EXIT WHEN NOT writes;
	END LOOP;
	IF writes THEN
		INSERT INTO {schema}.{bucket} AS b (key, spent, as_of, unit, full_at, prev, log)
			SELECT d.key, d.spent, d.as_of, d.unit, d.due + shift, nullif(d.prev, 0), d.log
			FROM unnest(keys, spents, as_ofs, units, prevs, dues, logs, dirty) AS d (key, spent, as_of, unit, prev, due, log, dirty)
			WHERE d.dirty
			ON CONFLICT (key) DO UPDATE SET spent = excluded.spent, as_of = excluded.as_of, unit = excluded.unit,
				full_at = excluded.full_at, prev = excluded.prev, log = excluded.log;
	END IF;
	SELECT array_agg(d.key) FROM unnest(keys, dirty) AS d (key, dirty) WHERE NOT d.dirty AND d.key = ANY (fresh) INTO fresh;
	IF fresh IS NOT NULL THEN
		PERFORM {schema}.{bucket}_forget(fresh); -- what is denied leaves nothing behind
	END IF;
END $$;

-- sweep removes rows of buckets that are full, and of takes that are remembered no
-- longer: up to most of each, in so many pages of each table from a part of it on, 0
-- being its beginning. It skips rows that somebody has locked, and does nothing
-- while another sweeps: then swept is -1. share is how much of the table it was.
CREATE FUNCTION {schema}.{bucket}_sweep(part float8, pages bigint, most int, OUT swept bigint, OUT share float8)
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off SET enable_indexscan = off SET jit = off AS $$
DECLARE
	clock CONSTANT bigint := {schema}.microseconds();
	size CONSTANT bigint := pg_relation_size('{schema}.{bucket}') / current_setting('block_size')::bigint + 1;
	memory CONSTANT bigint := pg_relation_size('{schema}.{bucket}_memory') / current_setting('block_size')::bigint + 1;
	page bigint := floor(part * size);
	gone bigint;
BEGIN
	swept := -1;
	share := least(pages::float8 / size, 1);
	IF NOT pg_try_advisory_xact_lock(x'6d657465'::bigint << 31 | '{schema}.{bucket}'::regclass::oid::bigint) THEN RETURN; END IF;
	DELETE FROM {schema}.{bucket} WHERE ctid = ANY (ARRAY(
		SELECT b.ctid FROM {schema}.{bucket} b
			WHERE b.ctid >= format('(%s,0)', page)::tid AND b.ctid < format('(%s,0)', page + pages)::tid AND b.full_at < clock
			LIMIT most FOR UPDATE SKIP LOCKED));
	GET DIAGNOSTICS swept = ROW_COUNT;
	page := floor(part * memory);
	DELETE FROM {schema}.{bucket}_memory WHERE ctid = ANY (ARRAY(
		SELECT m.ctid FROM {schema}.{bucket}_memory m
			WHERE m.ctid >= format('(%s,0)', page)::tid AND m.ctid <= format('(%s,0)', page + ceil(share * memory)::bigint)::tid
				AND m.until < clock
			LIMIT most FOR UPDATE SKIP LOCKED));
	GET DIAGNOSTICS gone = ROW_COUNT;
	swept := swept + gone;
END $$;

-- {bucket}_view shows the buckets to people. Bytes of keys that are no text are escaped.
CREATE VIEW {schema}.{bucket}_view AS
	SELECT encode(key, 'escape') AS key, CASE WHEN unit < 0 THEN 'sliding window' WHEN unit = 0 THEN 'sliding log' ELSE 'bucket' END AS kind,
		round(spent::numeric / greatest(unit, 1) / 1000, 6) AS missing, to_timestamp(as_of / 1e6) AS as_of, to_timestamp(full_at / 1e6) AS full_at
	FROM {schema}.{bucket};
$each$, '{bucket}', name), '{unlogged}', CASE name WHEN 'bucket' THEN 'UNLOGGED' ELSE '' END);
END LOOP;
END $both$;
