-- SPDX-License-Identifier: Apache-2.0
--
-- Buckets and all operations on them. The arithmetic is that in package bucket, in bigint. The part after the line
-- of dashes exists twice: for the unlogged table {schema}.bucket and the logged table {schema}.bucket_durable.
--
-- A row holds one account per version of a key's limit in use: package bucket calls it a Row. The first account is
-- in columns. Further accounts, which few rows have, are in the column others. An account has these fields:
--
--   lim     the format version 1, a colon, and the limit as package bucket encodes it. An account belongs to a
--           limit with the same text. Any other version is an error and never a full bucket. The empty text is
--           a row that was inserted to be locked and is not written yet
--   spent   spent tokens at as_of, in microseconds since 1970. The unit is 1/p thousandth of a token for a token
--           bucket, and a thousandth otherwise
--   as_of   for a sliding window, its start; for a sliding log, its last instant; for slots, the last take
--   prev    for a sliding window, the part of spent that belongs to the previous window
--   log     for a sliding log, the entries: pairs of an instant and a cost. For a concurrency limit, the slots:
--           triples of the end and the two halves of the ID, in the order of the ends. Such a row has no other
--           accounts, and its lim is the limit of the last take
--
-- A key without a row has a full bucket.
--
-- A penalty is a row beside its bucket's row. Its key is the bucket's key with a mark, and lim is 'penalty 1' with a format
-- version. The column log has four numbers: the end, the length in microseconds, the time from which the row counts as
-- absent, and the level. Takes write the row while they hold the lock of the bucket's row, and read it without a lock.
--
-- full_at is the time when all accounts are full if nothing more is taken. The row can be deleted then. Neither
-- full_at nor any other column that a take changes has an index, so updates are HOT and do not touch the index.
--
-- Calls lock rows in one pass over the keys in ascending order, by INSERT … ON CONFLICT. A second call waits at the
-- first common key, whether the row exists or not, so calls cannot deadlock. The plan of such an INSERT needs no
-- statistics. Decisions read the clock after the wait.
--
-- Names have the same meaning in every session: the bodies of SQL functions and views are bound at creation.
-- Functions that clients or views call set their search_path, and other functions run within those.

CREATE FUNCTION {schema}.microseconds() RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL SAFE
RETURN (date_part('epoch', clock_timestamp()) * 1000000)::bigint;

-- ceiling returns x / y rounded up, for x >= 0.
CREATE FUNCTION {schema}.ceiling(x bigint, y bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN x = 0 THEN 0 ELSE (x - 1) / y + 1 END;

-- refilled returns the spent tokens of a token bucket at clock.
CREATE FUNCTION {schema}.refilled(spent bigint, as_of bigint, clock bigint, n bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN clock - as_of > spent / n THEN 0 ELSE spent - greatest(clock - as_of, 0) * n END;

-- earliest returns the first instant at which a token bucket with capacity c admits cost, or 0 if it already does
-- at as_of.
CREATE FUNCTION {schema}.earliest(spent bigint, as_of bigint, cost bigint, c bigint, n bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN spent + cost <= c THEN 0 ELSE as_of + (spent + cost - c - 1) / n + 1 END;

-- full_after returns an instant after which a token bucket is full, if it has spent s at t.
CREATE FUNCTION {schema}.full_after(t bigint, s bigint, n bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN t + s / n + 1;

-- into returns the elapsed part of a window of length p in 4096ths. It computes two digits of base 64, because
-- the product can exceed a bigint.
CREATE FUNCTION {schema}.into(elapsed bigint, p bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN elapsed * 64 / p * 64 + elapsed * 64 % p * 64 / p;

-- step returns the start of the interval that contains t.
CREATE FUNCTION {schema}.step(t bigint, start bigint, p bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN t - ((t - start) % p + p) % p;

-- A rate_limit is a limit of package bucket. The algorithm is 0 (continuous), 1 (stepped), 2 (sliding window),
-- 3 (sliding log) or 4 (concurrency). It has capacity c, refills n every p microseconds, and allows up to debt reserved
-- tokens. A stepped limit with a calendar refills at the starts of its windows, which a call carries: see turned.
CREATE TYPE {schema}.rate_limit AS (
	algorithm bigint, c bigint, n bigint, p bigint, debt bigint, start bigint, first boolean, queued boolean,
	calendar boolean, starts bigint[]);

CREATE TYPE {schema}.account AS (lim text, spent bigint, as_of bigint, prev bigint, log bigint[]);

-- wraps account[], because PostgreSQL has no arrays of arrays.
CREATE TYPE {schema}.accounts AS (list {schema}.account[]);
CREATE TYPE {schema}.sliding_log AS (entries bigint[]); -- t1, c1, t2, c2 …, oldest first

-- limit_of parses a limit of a row. The expression has no counted repetitions, which would make it ten times slower.
CREATE FUNCTION {schema}.limit_of(lim text, key bytea) RETURNS {schema}.rate_limit
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	parts CONSTANT text[] := string_to_array(substr(lim, 3), ',');
	v bigint[];
	calendar CONSTANT boolean := strpos(lim, '.') > 0;
BEGIN
	IF lim ~ '^1:[0-9]+,[0-9]+,[0-9]+,[0-9]+,[0-9]+(,(day|week|month|year)[.][0-9][0-9]?[.][0-9][0-9]?[.][0-9][0-9][0-9][0-9][.][A-Za-z0-9_+/-]+)?$'
		AND greatest(length(parts[1]), length(parts[2]), length(parts[3]), length(parts[4])) <= 16 AND length(parts[5]) <= 18
		AND length(split_part(lim, '.', 5)) <= 64 THEN
		v := parts[:5]::bigint[];
		IF v[5] & 192 = 0 AND (v[5] & 12 = 12) = calendar AND v[5] & 35 NOT BETWEEN 33 AND 35 AND v[3] > 0 AND v[4] > 0 THEN
			RETURN ROW((v[5] & 3) | ((v[5] & 32) >> 3), v[1], v[3], v[4], v[2], v[5] >> 8, v[5] >> 2 & 3 = 2, v[5] & 16 > 0, calendar, NULL)::{schema}.rate_limit;
		ELSIF v = '{0,0,0,0,0}' THEN -- the limit that holds nothing
			RETURN '(0,0,1,1,0,0,f,f,f,)'::{schema}.rate_limit;
		END IF;
	END IF;
	RAISE EXCEPTION USING ERRCODE = 'MT001',
		MESSAGE = format('key %L has no bucket in format version 1: limit %L', encode(key, 'escape'), lim);
END $$;

-- viewed_limit is limit_of for views, which run with the search path of their reader.
CREATE FUNCTION {schema}.viewed_limit(lim text, key bytea) RETURNS {schema}.rate_limit
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	RETURN {schema}.limit_of(lim, key);
END $$;

-- window_of returns the position of the window that contains t among starts of windows, or 0.
CREATE FUNCTION {schema}.window_of(starts bigint[], t bigint) RETURNS int
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	i int := cardinality(starts);
BEGIN
	WHILE i > 0 AND starts[i] > t LOOP i := i - 1; END LOOP;
	RETURN coalesce(i, 0);
END $$;

-- arrival returns the start of the window that is this many windows after t. If starts does not have it, the result is
-- later: no windows exceed their mean length by four days together.
CREATE FUNCTION {schema}.arrival(l {schema}.rate_limit, times bigint, t bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN coalesce((l).starts[{schema}.window_of((l).starts, t) + least(times, 100000)::int],
	t + least(times, (1::bigint << 60) / (l).p) * (l).p + 345600000000);

-- turned returns the spent tokens of a calendar account in the window that contains clock, and the instant for which
-- they are valid. It returns NULL if starts lacks windows. While take runs, it keeps the result in the column log.
CREATE FUNCTION {schema}.turned(l {schema}.rate_limit, a {schema}.account, starts bigint[], clock bigint) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	i int := {schema}.window_of(starts, clock);
	t bigint;
BEGIN
	IF i = 0 OR i = cardinality(starts) THEN RETURN NULL; END IF;
	t := starts[i];
	IF a.as_of >= t THEN RETURN ARRAY[a.spent, a.as_of]; END IF;
	WHILE i > 0 AND a.spent > 0 AND starts[i] > a.as_of LOOP
		a.spent := a.spent - l.n;
		i := i - 1;
	END LOOP;
	IF i = 0 AND a.spent > 0 THEN RETURN NULL; END IF;
	RETURN ARRAY[greatest(a.spent, 0), t];
END $$;

-- starts_of returns the starts of a calendar limit in a call: see take. It returns NULL if the call does not have the limit.
CREATE FUNCTION {schema}.starts_of(calendars text[], windows bigint[], lim text) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	j int := 1;
BEGIN
	FOR i IN 1 .. cardinality(calendars) LOOP
		IF calendars[i] = lim THEN RETURN windows[j + 2 : j + 1 + windows[j]]; END IF;
		j := j + 2 + windows[j];
	END LOOP;
	RETURN NULL;
END $$;

-- refills returns the refill from the instant t to the instant at, at most 2^53 - 1. A calendar limit needs its windows since t.
CREATE FUNCTION {schema}.refills(l {schema}.rate_limit, t bigint, at bigint) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	most CONSTANT bigint := 9007199254740991;
	times bigint := greatest(at - t, 0);
BEGIN
	IF l.calendar THEN
		times := CASE WHEN {schema}.window_of(l.starts, t) = 0 THEN most
			ELSE greatest({schema}.window_of(l.starts, at) - {schema}.window_of(l.starts, t), 0) END;
	ELSIF l.algorithm = 1 THEN times := times / l.p;
	END IF;
	RETURN CASE WHEN times > most / l.n THEN most ELSE times * l.n END;
END $$;

-- look reads an account other than a log at clock. It returns the spent tokens (s), the instant for which they are
-- valid (t), and the part that belongs to the previous window (w).
CREATE FUNCTION {schema}.look(l {schema}.rate_limit, clock bigint,
	spent bigint, as_of bigint, prev bigint, turned bigint[], OUT s bigint, OUT t bigint, OUT w bigint)
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
		s := CASE WHEN t - as_of > s / n THEN 0 ELSE least(s - (t - as_of) * n, (l.c + l.debt) * p) END;
	ELSIF l.calendar THEN
		s := least(coalesce(turned[1], s), l.c + l.debt);
		t := coalesce(turned[2], as_of);
	ELSIF l.algorithm = 1 THEN
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
		CASE (t - begun) / p
		WHEN 0 THEN s := s + w; t := begun;
		WHEN 1 THEN w := s; t := begun + p;
		ELSE s := 0; w := 0; t := t - t % p;
		END CASE;
	END IF;
END $$;

-- admits reports whether cost may be spent from a bucket that has spent s at t, within a wait in microseconds. -1
-- is a plain take, and -2 uses all of the allowed debt.
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
		IF l.calendar THEN RETURN {schema}.arrival(l, {schema}.ceiling(s - room, l.n), t) - greatest(t, clock) <= wait; END IF;
		RETURN {schema}.ceiling(s - room, l.n) <= (wait - least(t - clock, 0)) / l.p;
	END IF;
	loan := l.debt * l.p;
	IF wait >= 0 AND wait < {schema}.ceiling(loan, l.n) THEN loan := wait * l.n; END IF;
	RETURN room * l.p + loan >= 0 AND s <= room * l.p + loan;
END $$;

-- remaining returns the remaining tokens of a bucket that has spent s at t.
CREATE FUNCTION {schema}.remaining(l {schema}.rate_limit, clock bigint, s bigint, t bigint, w bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN greatest(0, CASE l.algorithm
		WHEN 0 THEN l.c - {schema}.ceiling(s, l.p)
		WHEN 1 THEN l.c - s
		ELSE l.c - (s - w) - {schema}.ceiling(w * (4096 - {schema}.into(greatest(clock - t, 0), l.p)), 4096) END);

-- full_at returns the time when a bucket is full that has spent s at t, at most 36,000 years after t. A log is
-- full one window after its last instant. For calendars, the result may be days later.
CREATE FUNCTION {schema}.full_at(l {schema}.rate_limit, s bigint, t bigint, w bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN l.calendar AND s > 0 THEN {schema}.arrival(l, {schema}.ceiling(s, l.n), t) ELSE
	t + CASE WHEN s = 0 THEN 0 ELSE CASE l.algorithm
		WHEN 0 THEN {schema}.ceiling(s, l.n)
		WHEN 1 THEN least({schema}.ceiling(s, l.n), (1::bigint << 60) / l.p) * l.p
		WHEN 3 THEN l.p
		WHEN 4 THEN 0
		ELSE CASE WHEN s > w THEN 2 * l.p ELSE l.p END END END END;

CREATE FUNCTION {schema}.log_sum(g bigint[]) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
	SELECT coalesce(sum(c), 0)::bigint FROM unnest(g) WITH ORDINALITY AS e (c, i) WHERE i % 2 = 0;
END;

-- log_newest returns the last instant of a log, or 0 if it is empty.
CREATE FUNCTION {schema}.log_newest(g bigint[]) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN coalesce(g[cardinality(g) - 1], 0);

-- log_live returns the number of expired entries at t, and the sum of the other entries.
CREATE FUNCTION {schema}.log_live(l {schema}.rate_limit, g bigint[], t bigint, OUT gone int, OUT sum bigint)
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	count CONSTANT int := cardinality(g) / 2;
BEGIN
	gone := 0;
	WHILE gone < count AND g[2 * gone + 1] <= t - l.p LOOP gone := gone + 1; END LOOP;
	sum := {schema}.log_sum(CASE WHEN gone = 0 THEN g ELSE g[2 * gone + 1 :] END);
END $$;

-- log_wait returns the wait until a log with gone expired entries and the given sum admits cost: -1 is never.
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

-- log_spent returns the log after a take of cost, without expired entries, its sum and its last instant. Takes at
-- one instant share an entry. At the maximum number of entries, the last two are merged.
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

-- log_refunded returns the log without its oldest costs.
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

-- log_canceled returns the log with a lower cost for the entry of one instant, or NULL
-- if the log has no such entry.
CREATE FUNCTION {schema}.log_canceled(l {schema}.rate_limit, g bigint[], at bigint, back bigint, taken_at bigint, OUT h bigint[], OUT sum bigint)
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	i int;
BEGIN
	SELECT * FROM {schema}.log_live(l, g, at) INTO i, sum;
	g := g[2 * i + 1 :];
	FOR i IN 1 .. cardinality(g) / 2 LOOP
		CONTINUE WHEN g[2 * i - 1] <> taken_at;
		sum := sum - least(back, g[2 * i]);
		IF back < g[2 * i] THEN g[2 * i] := g[2 * i] - back;
		ELSE g := g[: 2 * i - 2] || g[2 * i + 1 :];
		END IF;
		h := g;
		RETURN;
	END LOOP;
END $$;

-- slots_live returns the slots that have not ended at clock.
CREATE FUNCTION {schema}.slots_live(g bigint[], clock bigint) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	gone int := 0;
	size CONSTANT int := coalesce(cardinality(g), 0);
BEGIN
	WHILE 3 * gone < size AND g[3 * gone + 1] <= clock LOOP gone := gone + 1; END LOOP;
	RETURN CASE WHEN size = 0 THEN '{}' WHEN gone = 0 THEN g ELSE g[3 * gone + 1 :] END;
END $$;

-- slots_without returns the slots except the one with this ID. It returns all of them if there is none.
CREATE FUNCTION {schema}.slots_without(g bigint[], high bigint, low bigint) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
	FOR i IN REVERSE coalesce(cardinality(g), 0) / 3 .. 1 LOOP
		IF g[3 * i] = low AND g[3 * i - 1] = high THEN RETURN g[: 3 * i - 3] || g[3 * i + 1 :]; END IF;
	END LOOP;
	RETURN g;
END $$;

-- slots_with returns the slots with one more.
CREATE FUNCTION {schema}.slots_with(g bigint[], till bigint, high bigint, low bigint) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	i int := cardinality(g) / 3;
BEGIN
	WHILE i > 0 AND g[3 * i - 2] > till LOOP i := i - 1; END LOOP;
	RETURN g[: 3 * i] || ARRAY[till, high, low] || g[3 * i + 1 :];
END $$;

-- missing returns the spent tokens of an account at clock in thousandths (m), and the results s, t and w of look.
-- For a log, s is the sum of its entries, t its instant at clock, and w the number of expired entries.
CREATE FUNCTION {schema}.missing(l {schema}.rate_limit, a {schema}.account, clock bigint,
	OUT m bigint, OUT s bigint, OUT t bigint, OUT w bigint)
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
	IF l.algorithm = 3 THEN
		t := greatest(clock, {schema}.log_newest(a.log));
		SELECT x.gone, x.sum FROM {schema}.log_live(l, coalesce(a.log, '{}'), t) AS x INTO w, s;
		m := s;
		RETURN;
	END IF;
	SELECT x.s, x.t, x.w FROM {schema}.look(l, clock, a.spent, a.as_of, a.prev, a.log) AS x INTO s, t, w;
	m := CASE l.algorithm WHEN 0 THEN {schema}.ceiling(s, l.p) WHEN 1 THEN s
		ELSE s - w + {schema}.ceiling(w * (4096 - {schema}.into(greatest(clock - t, 0), l.p)), 4096) END;
END $$;

-- opened returns the account of a limit in a row. If the row does not have it, the new account starts with the
-- state of the account with the most spent tokens. A new account is fresh if it has spent anything.
CREATE FUNCTION {schema}.opened(l {schema}.rate_limit, asked text, list {schema}.account[], key bytea, clock bigint,
	OUT own {schema}.account, OUT fresh boolean)
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	a {schema}.account;
	m {schema}.rate_limit;
	at bigint := clock;
	most bigint := 0;
	holds bigint := 0;
	x bigint;
BEGIN
	FOREACH a IN ARRAY list LOOP
		IF a.lim = asked THEN
			own := a; fresh := false;
			RETURN;
		END IF;
	END LOOP;
	FOREACH a IN ARRAY list LOOP
		CONTINUE WHEN a.lim LIKE 'held:%';
		m := {schema}.limit_of(a.lim, key);
		at := greatest(at, a.as_of);
		SELECT y.m FROM {schema}.missing(m, a, clock) AS y INTO x;
		IF x > most THEN most := x; holds := m.c; END IF;
	END LOOP;
	fresh := most > 0;
	most := least(most, holds, l.c) + least(greatest(most - holds, 0), l.debt);
	own := ROW(asked, most, at, 0, NULL);
	IF l.algorithm = 0 THEN own.spent := most * l.p;
	ELSIF l.calendar THEN own.as_of := coalesce(l.starts[{schema}.window_of(l.starts, at)], at);
	ELSIF l.algorithm = 1 THEN
		IF NOT l.first THEN own.as_of := {schema}.step(at, l.start, l.p); END IF;
	ELSIF l.algorithm = 2 THEN own.as_of := greatest(at, 0) - greatest(at, 0) % l.p;
	ELSIF most > 0 THEN own.log := ARRAY[at, most];
	END IF;
END $$;

-- written returns the accounts of a row after a decision about cost. The account that decided comes first. Two
-- other accounts follow, which are charged the same cost, at most until they are empty. If all others are full,
-- the row drops them. Histories follow: see 0006_hold.sql. The account that decided lacked s before, and wait is as in
-- admits.
CREATE FUNCTION {schema}.written(own {schema}.account, list {schema}.account[], key bytea, clock bigint, cost bigint, s bigint, wait bigint) RETURNS {schema}.account[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	a {schema}.account;
	m {schema}.rate_limit;
	r record;
	part bigint;
	kept {schema}.account[] := ARRAY[own];
	was {schema}.account; h {schema}.account;
	before bigint;
	histories {schema}.account[] := '{}';
	others boolean := false;
BEGIN
	FOREACH a IN ARRAY list LOOP
		IF a.lim = own.lim THEN before := a.as_of; END IF;
		IF a.lim = 'held:' || own.lim THEN -- after its account
			m := {schema}.limit_of(own.lim, key);
			h := {schema}.kept_history(m, a, clock, before, s);
			IF cost > 0 THEN h := {schema}.noted(m, h, s, own.spent, cost, wait, own.as_of); END IF;
			IF h.lim IS NOT NULL THEN histories := histories || h; END IF;
		END IF;
		CONTINUE WHEN a.lim = own.lim OR a.lim LIKE 'held:%' OR cardinality(kept) = 3;
		was := a;
		m := {schema}.limit_of(a.lim, key);
		SELECT * FROM {schema}.missing(m, a, clock) INTO r;
		others := others OR r.s > 0;
		part := least(cost, m.c - r.m);
		IF part > 0 THEN
			IF m.algorithm = 3 THEN
				SELECT x.h, x.sum, x.t FROM {schema}.log_spent(m, coalesce(a.log, '{}'), r.w::int, r.t, part) AS x INTO a.log, a.spent, a.as_of;
			ELSE
				a.spent := r.s + part * CASE m.algorithm WHEN 0 THEN m.p ELSE 1 END;
				a.as_of := r.t;
				a.prev := r.w;
				a.log := NULL;
			END IF;
		END IF;
		kept := kept || a;
		h := {schema}.history(list, a.lim);
		IF h.lim IS NOT NULL THEN
			h := {schema}.kept_history(m, h, clock, was.as_of, r.s);
			IF part > 0 THEN h := {schema}.noted(m, h, r.s, 0, part, -2, 0); END IF;
			IF h.lim IS NOT NULL THEN histories := histories || h; END IF;
		END IF;
	END LOOP;
	IF others THEN RETURN kept || histories; END IF;
	FOREACH h IN ARRAY histories LOOP
		IF h.lim = 'held:' || own.lim THEN RETURN ARRAY[own, h]; END IF;
	END LOOP;
	RETURN kept[1:1];
END $$;

-- refunded returns the account after an admin refund.
CREATE FUNCTION {schema}.refunded(l {schema}.rate_limit, a {schema}.account, clock bigint, back bigint) RETURNS {schema}.account
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	r record;
	part bigint;
BEGIN
	IF back <= 0 OR a.spent = 0 THEN RETURN a; END IF;
	IF l.algorithm = 3 THEN
		r := {schema}.log_refunded(l, a.log, greatest(clock, {schema}.log_newest(a.log)), back);
		a.as_of := CASE WHEN r.sum = 0 THEN greatest(clock, {schema}.log_newest(a.log)) ELSE {schema}.log_newest(a.log) END;
		a.log := r.h;
		a.spent := r.sum;
		RETURN a;
	END IF;
	r := {schema}.look(l, clock, a.spent, a.as_of, a.prev, a.log);
	a.spent := r.s; a.as_of := r.t; a.prev := r.w; a.log := NULL;
	IF l.algorithm = 2 THEN -- this window first
		part := least(back, a.spent - a.prev);
		a.prev := a.prev - least(back - part, a.prev);
		a.spent := r.s - part - (r.w - a.prev);
	ELSE
		part := CASE l.algorithm WHEN 0 THEN l.p ELSE 1 END;
		a.spent := CASE WHEN back >= {schema}.ceiling(a.spent, part) THEN 0 ELSE a.spent - back * part END;
	END IF;
	RETURN a;
END $$;

-- canceled returns the account after a take was canceled, fully or partly. It exceeds no limit: see
-- bucket.Limit.Cancel. The parameters cost, taken_at and missed are the take's cost, its instant, and the spent
-- tokens after it.
CREATE FUNCTION {schema}.canceled(l {schema}.rate_limit, a {schema}.account, clock bigint, back bigint,
	cost bigint, taken_at bigint, missed bigint) RETURNS {schema}.account
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	most CONSTANT bigint := 9007199254740991;
	r record;
	unit bigint := CASE l.algorithm WHEN 0 THEN l.p ELSE 1 END;
	whole boolean := back >= cost;
	came bigint; -- refilled since the take
BEGIN
	back := least(back, cost);
	IF back <= 0 OR a.spent = 0 THEN RETURN a; END IF;
	IF l.algorithm = 3 THEN
		r := {schema}.log_canceled(l, a.log, greatest(clock, {schema}.log_newest(a.log)), back, taken_at);
		IF r.h IS NOT NULL THEN
			a.as_of := CASE WHEN r.sum = 0 THEN greatest(clock, {schema}.log_newest(a.log)) ELSE {schema}.log_newest(r.h) END;
			a.log := r.h;
			a.spent := r.sum;
		END IF;
		RETURN a;
	END IF;
	r := {schema}.look(l, clock, a.spent, a.as_of, a.prev, a.log);
	IF l.algorithm = 2 THEN
		back := least(back, r.s - r.w);
		IF back > 0 AND r.t = taken_at THEN
			a.spent := r.s - back; a.as_of := r.t; a.prev := r.w;
		END IF;
		RETURN a;
	END IF;
	came := {schema}.refills(l, taken_at, r.t);
	cost := CASE WHEN cost > most / unit THEN most ELSE cost * unit END; -- avoids an overflow
	back := CASE WHEN back > most / unit THEN most ELSE back * unit END;
	IF r.s > l.c * unit THEN -- in debt
		IF NOT whole OR came <> missed - r.s THEN RETURN a; END IF;
		back := least(back, r.s);
	ELSE
		back := least(back, greatest(cost - came, 0), r.s);
	END IF;
	IF back > 0 THEN
		a.spent := r.s - back; a.as_of := r.t; a.prev := 0; a.log := NULL;
	END IF;
	RETURN a;
END $$;

-- slots_check refuses a key of slots for a bucket, and the other way round: see store.Charge.
CREATE FUNCTION {schema}.slots_check(lim text, key bytea, slots boolean) RETURNS void
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	l CONSTANT {schema}.rate_limit := {schema}.limit_of(lim, key);
BEGIN
	IF (l.algorithm = 4) <> slots THEN
		RAISE EXCEPTION USING ERRCODE = 'MT001',
			MESSAGE = format('key %L holds %s', encode(key, 'escape'), CASE WHEN slots THEN 'a bucket, not slots' ELSE 'slots, not a bucket' END);
	END IF;
END $$;

-- due returns the time when all accounts are full and all holds have expired.
CREATE FUNCTION {schema}.due(list {schema}.account[], key bytea) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	a {schema}.account;
	l {schema}.rate_limit;
	latest bigint;
BEGIN
	FOREACH a IN ARRAY list LOOP
		IF a.lim LIKE 'held:%' THEN
			latest := greatest(latest, a.spent);
			CONTINUE;
		END IF;
		l := {schema}.limit_of(a.lim, key); -- so that PostgreSQL inlines full_at
		latest := greatest(latest, {schema}.full_at(l, a.spent, a.as_of, a.prev));
	END LOOP;
	RETURN latest;
END $$;

-- The part below exists for each of the two bucket tables.
DO $both$
DECLARE
	name text;
BEGIN
FOREACH name IN ARRAY ARRAY['bucket', 'bucket_durable'] LOOP
EXECUTE replace(replace($each$

CREATE {unlogged} TABLE {schema}.{bucket} (
	spent   bigint NOT NULL,
	as_of   bigint NOT NULL,
	full_at bigint NOT NULL,
	took    bigint NOT NULL DEFAULT 0, -- scratch: amount of the last call; negative if the call inserted the row
	prev    bigint,
	lim     text COLLATE "C" NOT NULL,
	log     bigint[],
	others  {schema}.account[],
	key     bytea PRIMARY KEY
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000,
	autovacuum_vacuum_insert_scale_factor = 0.2, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE {schema}.{bucket} ALTER log SET STORAGE EXTERNAL; -- compression costs too much for frequent changes

-- Takes that are remembered by ID: the answer, and the limits at that time. Refunds are remembered by their own
-- IDs, without an answer.
CREATE {unlogged} TABLE {schema}.{bucket}_memory (
	id     bytea PRIMARY KEY,
	at     bigint NOT NULL, -- by the clock of the take
	until  bigint NOT NULL, -- by the server's clock; the row can be deleted then
	answer bigint[] NOT NULL,
	limits text[] NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- states returns the existing rows of keys with their positions. It looks up each key separately, independent of
-- the planner's estimate of the table size.
CREATE FUNCTION {schema}.{bucket}_states(keys bytea[])
RETURNS TABLE (i bigint, lim text, spent bigint, as_of bigint, prev bigint, log bigint[], others {schema}.account[])
LANGUAGE plpgsql STABLE ROWS 10
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_bitmapscan = off SET jit = off AS $$
#variable_conflict use_column
BEGIN
	RETURN QUERY SELECT k.i, b.lim, b.spent, b.as_of, b.prev, b.log, b.others
		FROM unnest(keys) WITH ORDINALITY AS k (key, i) JOIN {schema}.{bucket} b ON b.key = k.key;
END $$;

-- late sets as_of of a row that the call has just inserted to now, and returns it. A call that waited before the
-- insert has read the clock too early.
CREATE FUNCTION {schema}.{bucket}_late(k bytea) RETURNS bigint
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
	clock CONSTANT bigint := {schema}.microseconds();
BEGIN
	UPDATE {schema}.{bucket} b SET as_of = clock, full_at = b.full_at + clock - b.as_of WHERE b.key = k;
	RETURN clock;
END $$;

-- take_one takes amount, or the available part of it in whole costs, from one token bucket. All numbers are in
-- units of 1/p thousandth, and c is the capacity. The result took is the amount, with the state after it; 0 is a
-- denial, with the deciding state. took is -1 if the row is not one account of this limit, or if nothing could be
-- decided. A negative clock selects the server's clock. With look, the function first reads the row without a
-- lock, for takes that are probably denied.
--
-- The clock is read when the row is locked, and again for the written row. If it stepped back in between, the
-- earliest admitting instant counts.
CREATE FUNCTION {schema}.{bucket}_take_one(INOUT clock bigint, k bytea, asked text, amount bigint, c bigint, n bigint,
	cost bigint, look boolean, OUT took bigint, OUT spent bigint, OUT as_of bigint)
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	given CONSTANT boolean := clock >= 0;
	shift bigint := 0;
	own boolean;
BEGIN
	IF given THEN shift := {schema}.microseconds() - clock + 3600000000; END IF;
	FOR try IN 1..3 LOOP
		IF NOT given THEN clock := {schema}.microseconds(); END IF;
		IF look OR try > 1 THEN
			SELECT s.spent, s.as_of, s.lim = asked AND s.others IS NULL FROM {schema}.{bucket}_states(ARRAY[k]) s INTO spent, as_of, own;
			IF FOUND THEN
				took := -1;
				IF NOT own THEN RETURN; END IF;
				IF {schema}.refilled(spent, as_of, clock, n) + cost > c THEN
					took := 0;
					RETURN;
				END IF;
			END IF;
		END IF;
		INSERT INTO {schema}.{bucket} AS b (key, lim, spent, as_of, full_at, took)
			VALUES (k, asked, amount, clock, {schema}.full_after(clock, amount, n) + shift, -1)
			ON CONFLICT (key) DO UPDATE SET (spent, as_of, full_at, took) = (
				SELECT z.s + z.took, z.t, {schema}.full_after(z.t, z.s + z.took, n) + shift, z.took
				FROM (SELECT y.s, y.t, least(amount, (c - y.s) / cost * cost) AS took
				FROM (SELECT {schema}.refilled(b.spent, b.as_of, x.t, n) AS s, x.t
				FROM (SELECT greatest(CASE WHEN given THEN clock ELSE {schema}.microseconds() END, b.as_of,
					{schema}.earliest(b.spent, b.as_of, cost, c, n)) AS t OFFSET 0) x OFFSET 0) y OFFSET 0) z)
			WHERE b.lim = asked AND b.others IS NULL AND
				CASE WHEN given THEN clock ELSE {schema}.microseconds() END >= {schema}.earliest(b.spent, b.as_of, cost, c, n)
			RETURNING b.took, b.spent, b.as_of INTO took, spent, as_of;
		IF FOUND THEN
			IF NOT given THEN clock := {schema}.microseconds(); END IF;
			IF took < 0 THEN
				took := amount;
				IF NOT given AND clock > as_of + 1000 THEN as_of := {schema}.{bucket}_late(k); END IF;
			END IF;
			RETURN;
		END IF;
	END LOOP;
	took := -1;
END $$;

-- take_many is take_one for any number of keys in ascending order. Each key has an amount, and the position of
-- its limit among lims, c, n and cost. It returns a row for each key that it could decide; took is 0 for a
-- denial.
CREATE FUNCTION {schema}.{bucket}_take_many(clock bigint, keys bytea[], which bigint[], amounts bigint[],
	lims text[], c bigint[], n bigint[], cost bigint[], look boolean)
RETURNS TABLE (key bytea, took bigint, spent bigint, as_of bigint, now bigint)
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	given CONSTANT boolean := clock >= 0;
	shift bigint := 0;
	done bigint;
BEGIN
	IF given THEN shift := {schema}.microseconds() - clock + 3600000000;
	ELSE clock := {schema}.microseconds(); END IF;
	IF look THEN
		RETURN QUERY SELECT keys[s.i], 0::bigint, s.spent, s.as_of, clock FROM {schema}.{bucket}_states(keys) s
			WHERE s.lim = lims[which[s.i]] AND s.others IS NULL AND
				{schema}.refilled(s.spent, s.as_of, clock, n[which[s.i]]) + cost[which[s.i]] > c[which[s.i]];
		SELECT array_agg(k.key), array_agg(k.which), array_agg(k.amount)
			FROM unnest(keys, which, amounts) WITH ORDINALITY AS k (key, which, amount, i)
			LEFT JOIN {schema}.{bucket}_states(keys) s ON s.i = k.i
			WHERE s.i IS NULL OR s.lim = lims[k.which] AND s.others IS NULL AND
				{schema}.refilled(s.spent, s.as_of, clock, n[k.which]) + cost[k.which] <= c[k.which]
			INTO keys, which, amounts;
		IF keys IS NULL THEN RETURN; END IF;
	END IF;
	-- took passes the position of the limit. A new row keeps it, because its amount is the spent tokens.
	RETURN QUERY INSERT INTO {schema}.{bucket} AS b (key, lim, spent, as_of, full_at, took)
		SELECT k.key, lims[k.which], k.amount, CASE WHEN given THEN clock ELSE {schema}.microseconds() END,
			{schema}.full_after(CASE WHEN given THEN clock ELSE {schema}.microseconds() END, k.amount, n[k.which]) + shift, k.which - 1000000
		FROM unnest(keys, which, amounts) AS k (key, which, amount)
		ON CONFLICT (key) DO UPDATE SET
			(spent, as_of, full_at, took) = (SELECT z.s + z.took, z.t, {schema}.full_after(z.t, z.s + z.took, z.n) + shift, z.took
				FROM (SELECT y.s, y.t, y.n, least(excluded.spent, (y.c - y.s) / y.cost * y.cost) AS took
				FROM (SELECT x.t, x.n, x.c, x.cost, {schema}.refilled(b.spent, b.as_of, x.t, x.n) AS s
				FROM (SELECT u.n, u.c, u.cost, greatest(CASE WHEN given THEN clock ELSE {schema}.microseconds() END, b.as_of,
					{schema}.earliest(b.spent, b.as_of, u.cost, u.c, u.n)) AS t
				FROM (SELECT c[w.w] AS c, n[w.w] AS n, cost[w.w] AS cost
				FROM (SELECT excluded.took + 1000000 AS w OFFSET 0) w OFFSET 0) u OFFSET 0) x OFFSET 0) y OFFSET 0) z)
		WHERE b.lim = excluded.lim AND b.others IS NULL AND CASE WHEN given THEN clock ELSE {schema}.microseconds() END >=
			{schema}.earliest(b.spent, b.as_of, cost[excluded.took + 1000000], c[excluded.took + 1000000], n[excluded.took + 1000000])
		RETURNING b.key, CASE WHEN b.took < 0 THEN b.spent ELSE b.took END, b.spent,
			CASE WHEN b.took < 0 AND NOT given AND {schema}.microseconds() > b.as_of + 1000 THEN {schema}.{bucket}_late(b.key) ELSE b.as_of END,
			CASE WHEN given THEN clock ELSE {schema}.microseconds() END;
	GET DIAGNOSTICS done = ROW_COUNT;
	IF done < cardinality(keys) THEN -- by the current states; for a charged key, the first result row counts
		IF NOT given THEN clock := {schema}.microseconds(); END IF;
		RETURN QUERY SELECT keys[s.i], 0::bigint, s.spent, s.as_of, clock FROM {schema}.{bucket}_states(keys) s
			WHERE s.lim = lims[which[s.i]] AND s.others IS NULL AND
				{schema}.refilled(s.spent, s.as_of, clock, n[which[s.i]]) + cost[which[s.i]] > c[which[s.i]];
	END IF;
END $$;

-- lock locks the rows of keys in ascending order. It inserts missing rows and returns their keys; the caller must
-- write or delete them.
CREATE FUNCTION {schema}.{bucket}_lock(keys bytea[]) RETURNS bytea[]
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
	fresh bytea[];
BEGIN
	WITH made AS (
		INSERT INTO {schema}.{bucket} AS b (key, lim, spent, as_of, full_at)
			SELECT k, '', 0, 0, {schema}.microseconds() + 3600000000 FROM unnest(keys) AS k
			ON CONFLICT (key) DO UPDATE SET took = 0 WHERE false
			RETURNING b.key)
	SELECT array_agg(made.key) FROM made INTO fresh;
	RETURN fresh;
END $$;

-- delete_rows deletes locked rows, so that their buckets are full.
CREATE FUNCTION {schema}.{bucket}_delete_rows(keys bytea[]) RETURNS void
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off AS $$
DECLARE
	k bytea;
BEGIN
	FOREACH k IN ARRAY keys LOOP
		DELETE FROM {schema}.{bucket} b WHERE b.key = k;
	END LOOP;
END $$;

-- reset fills buckets atomically: a take of several buckets sees all of them before the reset, or all of them
-- after it. Their holds return nothing afterwards: see 0006_hold.sql.
CREATE FUNCTION {schema}.{bucket}_reset(keys bytea[]) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off AS $$
BEGIN
	PERFORM {schema}.{bucket}_lock(keys);
	DELETE FROM {schema}.{bucket}_hold_due d WHERE d.key = ANY (keys);
	PERFORM {schema}.{bucket}_delete_rows(keys || ARRAY(SELECT k || convert_to('|#penalty', 'UTF8') FROM unnest(keys) AS k));
END $$;

-- penalty returns the penalty of a bucket's key at clock, as four numbers. They are 0 without a penalty.
CREATE FUNCTION {schema}.{bucket}_penalty(k bytea, clock bigint) RETURNS bigint[]
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off AS $$
DECLARE
	r record;
BEGIN
	SELECT b.lim, b.log FROM {schema}.{bucket} b WHERE b.key = k || convert_to('|#penalty', 'UTF8') INTO r;
	IF NOT FOUND THEN RETURN '{0,0,0,0}'; END IF;
	IF r.lim <> 'penalty 1' OR cardinality(r.log) <> 4 THEN
		RAISE EXCEPTION USING ERRCODE = 'MT001',
			MESSAGE = format('key %L has no penalty in format version 1: limit %L', encode(k, 'escape'), r.lim);
	END IF;
	IF clock >= r.log[3] THEN RETURN '{0,0,0,0}'; END IF;
	RETURN r.log;
END $$;

-- punish starts a penalty after the earlier penalty, as bucket.Penalty does, and returns it. With write, it also writes
-- the penalty, and the caller holds the lock of the bucket's row. first, most and factor are the numbers of the penalty.
CREATE FUNCTION {schema}.{bucket}_punish(k bytea, earlier bigint[], clock bigint, shift bigint,
	first bigint, most bigint, factor bigint, write boolean, OUT penalty bigint[])
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
	length CONSTANT bigint := least(greatest(earlier[2] / 1000 * factor + earlier[2] % 1000 * factor / 1000, first), most);
BEGIN
	penalty := ARRAY[clock + length, length, clock + length + CASE WHEN first < most THEN most ELSE 0 END, earlier[4] + 1];
	IF write THEN
		INSERT INTO {schema}.{bucket} AS b (key, lim, spent, as_of, full_at, log)
			VALUES (k || convert_to('|#penalty', 'UTF8'), 'penalty 1', 0, 0, penalty[3] + shift, penalty)
			ON CONFLICT (key) DO UPDATE SET lim = excluded.lim, full_at = excluded.full_at, log = excluded.log;
	END IF;
END $$;

-- take runs any takes and refunds, one after another, atomically. The keys are in ascending order. A limit is its text
-- in a row, and eight numbers: the fields of a rate_limit. Positions of keys, limits and ids start at 1. The program
-- has these numbers per operation:
--
--   1, flags (1: dry run, 2: up to, 4: renew slots), wait as in admits, the position of the id that remembers it or 0,
--      the number of charges, and per charge: key, limit, cost, and two numbers: the halves of the slot's ID, or the
--      microseconds for which the take of a bucket awaits its cancellation and 0. For a hold, the first of the two is
--      negative: its microseconds. The second is then 1 if the hold is refunded at its expiry
--   3, the number of charges of the next take, and per charge: first, most and factor of its penalty; 0 is no penalty
--   2, the position of the id or 0, the number of charges, and per charge: key, limit, refunded amount, and the
--      canceled take's cost, its instant, and the spent tokens after it; a cost of -1 is no take. For a slot, the
--      last two are the halves of its ID
--
-- Each calendar limit has its text among calendars. Its numbers among windows are the number of starts, the longest wait
-- of a reservation, and the starts. If the call lacks windows, it changes nothing. Then answers has 3, the time and
-- instants, and limits has the texts of the limits that need windows at these instants.
--
-- The first number of an answer is 1 (taken), 0 (denied) or 2 (taken before; limits has the limits of that time). It is 4
-- for a hold of a bucket with too many holds, and the answer then ends with it. The time follows, and per charge its cost
-- and five numbers:
--
--   0, spent, as_of, prev, 0    the account before the take; after it if the take has an id and was not denied, or if it
--                               is a hold. The last number is then the ID of the history
--   1, sum, behind, wait, 0     a log's sum, the distance of its instant from the clock, and the wait; -1 is never
--   2, held, next, last, wait   the held slots, the times until the first and the last of them end, and the wait
--
-- If the take has penalties and was not taken before, the rest of each charge's penalty and its level follow, or zeros.
--
-- look is as in take_one.
CREATE FUNCTION {schema}.{bucket}_take(clock bigint, keys bytea[], lims text[], numbers bigint[], program bigint[],
	ids bytea[], calendars text[], windows bigint[], look boolean, OUT answers bigint[], OUT limits text[])
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off -- the memory may have been empty at planning time
SET plan_cache_mode = force_generic_plan AS $$ -- else PostgreSQL plans queries of arrays in each call
#variable_conflict use_column
DECLARE
	given CONSTANT boolean := clock >= 0;
	shift bigint := 0;
	size CONSTANT int := cardinality(program);
	-- The rows by the position of their key, and the rows to write.
	firsts text[]; spents bigint[]; as_ofs bigint[]; prevs bigint[]; dues bigint[]; dirty boolean[];
	logs {schema}.sliding_log[];
	others {schema}.accounts[];
	list {schema}.account[]; was {schema}.account[];
	a {schema}.account;
	fresh bytea[]; -- rows inserted to be locked
	writes boolean := false;
	due_now boolean; -- a row has an expired hold to refund
	due_needs bigint[]; due_limits text[]; -- windows that these refunds need
	turning boolean; -- a row may have an account of a calendar
	r record;
	rates {schema}.rate_limit[];
	l {schema}.rate_limit;
	i int; j int; k int; x int; first int; charges int;
	memo int; flags bigint; wait bigint; cost bigint; room bigint; due bigint;
	ttl bigint; -- of a hold; negative if the take awaits its settlement
	ok boolean; held boolean;
	s bigint; t bigint; w bigint;
	-- The accounts of an operation before it, and their state at the clock.
	befores {schema}.account[]; opened boolean[]; several boolean[];
	costs bigint[]; ss bigint[]; ts bigint[]; ws bigint[]; waits bigint[];
	g bigint[]; sum bigint;
	answer bigint[]; called text[];
	penalties int; penalty bigint[]; punished bigint[]; own boolean; -- of the next take
	starts {schema}.sliding_log[]; reaches bigint[]; -- of calendars
	newest bigint;
BEGIN
	j := 1;
	FOR i IN 1 .. cardinality(calendars) LOOP
		starts[i] := ROW(windows[j + 2 : j + 1 + windows[j]]);
		reaches[i] := windows[j + 1];
		j := j + 2 + windows[j];
	END LOOP;
	IF given THEN shift := {schema}.microseconds() - clock + 3600000000; END IF;
	FOR i IN 1 .. cardinality(numbers) / 8 LOOP
		j := 8 * i;
		k := array_position(calendars, lims[i]);
		rates[i] := ROW(numbers[j - 7], numbers[j - 6], numbers[j - 5], numbers[j - 4], numbers[j - 3], numbers[j - 2],
			numbers[j - 1] = 1, numbers[j] = 1, k IS NOT NULL, (starts[k]).entries);
	END LOOP;
	-- The first pass uses no locks. If it writes nothing, its result is the answer.
	FOR locked IN CASE WHEN look THEN 0 ELSE 1 END .. 1 LOOP
		IF locked = 1 THEN
			fresh := {schema}.{bucket}_lock(keys);
		END IF;
		IF NOT given THEN clock := {schema}.microseconds(); END IF;
		newest := clock; turning := false; due_now := false; due_needs := '{}'; due_limits := '{}';
		FOR again IN 0 .. locked LOOP -- again after refunds of expired holds
			spents := array_fill(0::bigint, ARRAY[cardinality(keys)]);
			as_ofs := spents; prevs := spents; dues := spents;
			firsts := array_fill(''::text, ARRAY[cardinality(keys)]);
			dirty := array_fill(false, ARRAY[cardinality(keys)]);
			logs := array_fill(NULL::{schema}.sliding_log, ARRAY[cardinality(keys)]);
			others := array_fill(NULL::{schema}.accounts, ARRAY[cardinality(keys)]);
			FOR r IN SELECT * FROM {schema}.{bucket}_states(keys) LOOP
				k := r.i;
				firsts[k] := r.lim; spents[k] := r.spent; as_ofs[k] := r.as_of; prevs[k] := coalesce(r.prev, 0);
				newest := greatest(newest, r.as_of);
				IF r.log IS NOT NULL THEN logs[k] := ROW(r.log); END IF;
				IF r.others IS NOT NULL THEN
					others[k] := ROW(r.others);
					turning := true;
					due_now := due_now OR {schema}.{bucket}_is_due(r.others, clock);
				ELSIF strpos(r.lim, '.') > 0 THEN
					turning := true;
				END IF;
			END LOOP;
			EXIT WHEN locked = 0 OR NOT due_now OR again = 1;
			SELECT d.needs, d.needing FROM {schema}.{bucket}_refund_due(keys, clock, shift, calendars, windows) AS d INTO due_needs, due_limits;
		END LOOP;
		answers := due_needs; limits := due_limits; writes := false;
		FOR k IN 1 .. CASE WHEN turning THEN cardinality(keys) ELSE 0 END LOOP -- bring accounts of calendars to the clock
			CONTINUE WHEN firsts[k] = '';
			CONTINUE WHEN others[k] IS NULL AND firsts[k] NOT LIKE '1:%.%';
			list := ARRAY[ROW(firsts[k], spents[k], as_ofs[k], prevs[k], NULL)::{schema}.account] || (others[k]).list;
			FOR j IN 1 .. cardinality(list) LOOP
				CONTINUE WHEN list[j].lim LIKE 'held:%';
				newest := greatest(newest, list[j].as_of);
				CONTINUE WHEN strpos(list[j].lim, '.') = 0;
				x := array_position(lims, list[j].lim);
				IF x IS NULL THEN l := {schema}.limit_of(list[j].lim, keys[k]); ELSE l := rates[x]; END IF;
				g := {schema}.turned(l, list[j], (starts[array_position(calendars, list[j].lim)]).entries, clock);
				IF g IS NULL THEN
					answers := answers || list[j].as_of; limits := limits || list[j].lim;
				ELSIF j = 1 THEN
					logs[k] := ROW(g);
				ELSE
					a := list[j]; a.log := g;
					was := (others[k]).list; was[j - 1] := a;
					others[k] := ROW(was)::{schema}.accounts;
				END IF;
			END LOOP;
		END LOOP;
		FOR i IN 1 .. cardinality(calendars) LOOP
			CONTINUE WHEN {schema}.window_of((starts[i]).entries, clock) > 0 AND
				(starts[i]).entries[cardinality((starts[i]).entries)] > newest + reaches[i];
			answers := answers || newest; limits := limits || calendars[i];
		END LOOP;
		IF cardinality(limits) > 0 THEN
			answers := ARRAY[3, clock] || answers;
			EXIT;
		END IF;
		i := 1;
		<<operations>>
		WHILE i <= size LOOP
			IF program[i] = 2 THEN
				memo := program[i + 1];
				charges := program[i + 2];
				first := i + 3;
				i := first + 6 * charges;
				IF memo > 0 THEN
					PERFORM FROM {schema}.{bucket}_memory m WHERE m.id = ids[memo] AND clock - m.at < 120000000;
					CONTINUE WHEN FOUND;
					writes := true;
					IF locked = 1 THEN
						INSERT INTO {schema}.{bucket}_memory AS m (id, at, until, answer, limits)
							VALUES (ids[memo], clock, clock + shift + 120000000, '{}', '{}')
							ON CONFLICT (id) DO UPDATE SET at = excluded.at, until = excluded.until;
					END IF;
				END IF;
				FOR j IN 0 .. charges - 1 LOOP
					x := first + 6 * j;
					k := program[x]; cost := program[x + 2]; w := program[x + 3];
					CONTINUE WHEN firsts[k] = '';
					PERFORM {schema}.slots_check(firsts[k], keys[k], (rates[program[x + 1]]).algorithm = 4);
					IF (rates[program[x + 1]]).algorithm = 4 THEN
						g := {schema}.slots_without((logs[k]).entries, program[x + 4], program[x + 5]);
						CONTINUE WHEN g IS NOT DISTINCT FROM (logs[k]).entries;
						logs[k] := ROW(g);
						spents[k] := cardinality(g) / 3 * 1000;
						dues[k] := coalesce(g[cardinality(g) - 2], clock);
						dirty[k] := true; writes := true;
						CONTINUE;
					END IF;
					CONTINUE WHEN cost <= 0;
					was := ARRAY[ROW(firsts[k], spents[k], as_ofs[k], prevs[k], (logs[k]).entries)::{schema}.account] || (others[k]).list;
					IF EXISTS (SELECT FROM unnest(was) AS o (lim, spent, as_of, prev, log) WHERE o.lim LIKE 'held:%') THEN
						list := {schema}.refunded_accounts(was, keys[k], clock, lims[program[x + 1]], cost, w, program[x + 4], program[x + 5],
							(rates[program[x + 1]]).starts);
					ELSE
						list := '{}';
						FOREACH a IN ARRAY was LOOP
							IF w < 0 THEN
								a := {schema}.refunded({schema}.limit_of(a.lim, keys[k]), a, clock, cost);
							ELSIF a.lim = lims[program[x + 1]] THEN
								a := {schema}.canceled(rates[program[x + 1]], a, clock, cost, w, program[x + 4], program[x + 5]);
							END IF;
							list := list || a;
						END LOOP;
					END IF;
					CONTINUE WHEN list IS NOT DISTINCT FROM was;
					a := list[1];
					spents[k] := a.spent; as_ofs[k] := a.as_of; prevs[k] := a.prev;
					logs[k] := CASE WHEN a.log IS NOT NULL THEN ROW(a.log)::{schema}.sliding_log END;
					others[k] := CASE WHEN cardinality(list) > 1 THEN ROW(list[2:])::{schema}.accounts END;
					dues[k] := {schema}.due(list, keys[k]);
					dirty[k] := true; writes := true;
				END LOOP;
				CONTINUE;
			END IF;

			penalties := 0;
			IF program[i] = 3 THEN
				penalties := i + 2;
				i := penalties + 3 * program[i + 1];
			END IF;
			flags := program[i + 1]; wait := program[i + 2]; memo := program[i + 3]; charges := program[i + 4];
			first := i + 5;
			i := first + 5 * charges;
			IF memo > 0 THEN
				SELECT m.answer, m.limits FROM {schema}.{bucket}_memory m
					WHERE m.id = ids[memo] AND clock - m.at < 120000000 INTO r;
				ok := FOUND;
				FOR j IN 0 .. charges - 1 LOOP -- the retry of a take with an ended slot is a new take
					x := first + 5 * j;
					IF ok AND (rates[program[x + 1]]).algorithm = 4 AND program[x + 2] > 0 THEN
						g := {schema}.slots_live((logs[program[x]]).entries, clock);
						ok := {schema}.slots_without(g, program[x + 3], program[x + 4]) <> g;
					END IF;
				END LOOP;
				IF ok THEN
					answers := answers || r.answer;
					limits := limits || r.limits;
					CONTINUE;
				END IF;
			END IF;
			room := 9007199254740991;
			FOR j IN 0 .. charges - 1 LOOP
				x := program[first + 5 * j + 1];
				k := program[first + 5 * j]; l := rates[x];
				opened[j] := false;
				IF firsts[k] <> '' AND firsts[k] <> lims[x] THEN PERFORM {schema}.slots_check(firsts[k], keys[k], l.algorithm = 4); END IF;
				IF l.algorithm = 4 THEN
					several[j] := false;
					befores[j] := ROW(lims[x], 0, 0, 0, {schema}.slots_live((logs[k]).entries, clock));
					CONTINUE;
				END IF;
				several[j] := others[k] IS NOT NULL OR firsts[k] <> lims[x] AND firsts[k] <> '';
				IF several[j] THEN
					list := ARRAY[ROW(firsts[k], spents[k], as_ofs[k], prevs[k], (logs[k]).entries)::{schema}.account] || (others[k]).list;
					SELECT o.own, o.fresh FROM {schema}.opened(l, lims[x], list, keys[k], clock) AS o INTO r;
					a := r.own;
					opened[j] := r.fresh;
					IF program[first + 5 * j + 3] < 0 AND {schema}.has_max_holds(list, keys[k], clock, lims[x]) THEN
						answers := answers || ARRAY[4, clock];
						writes := false;
						EXIT operations;
					END IF;
				ELSE
					a := ROW(lims[x], spents[k], as_ofs[k], prevs[k], (logs[k]).entries);
					IF l.calendar AND firsts[k] = '' THEN a.as_of := l.starts[{schema}.window_of(l.starts, clock)]; END IF;
				END IF;
				befores[j] := a;
				IF l.algorithm = 3 THEN
					t := {schema}.log_newest(a.log);
					SELECT y.gone, y.sum FROM {schema}.log_live(l, coalesce(a.log, '{}'), greatest(clock, t)) AS y INTO w, s;
					IF flags >= 2 THEN room := least(room, greatest(l.c - s, 0)); END IF;
				ELSIF l.algorithm = 0 THEN -- the common case: an inlined look
					t := a.as_of; s := a.spent; w := 0;
					IF clock > t THEN
						s := CASE WHEN clock - t > s / l.n THEN 0 ELSE least(s - (clock - t) * l.n, (l.c + l.debt) * l.p) END;
						t := clock;
					END IF;
					IF flags >= 2 THEN room := least(room, greatest(l.c - {schema}.ceiling(s, l.p), 0)); END IF;
				ELSE
					SELECT * FROM {schema}.look(l, clock, a.spent, a.as_of, a.prev, a.log) INTO s, t, w;
					IF flags >= 2 THEN room := least(room, {schema}.remaining(l, clock, s, t, w)); END IF;
				END IF;
				ss[j] := s; ts[j] := t; ws[j] := w;
			END LOOP;
			ok := true;
			FOR j IN 0 .. charges - 1 LOOP
				l := rates[program[first + 5 * j + 1]]; cost := program[first + 5 * j + 2];
				IF l.algorithm = 4 THEN
					costs[j] := cost;
					g := (befores[j]).log;
					held := {schema}.slots_without(g, program[first + 5 * j + 3], program[first + 5 * j + 4]) <> g;
					waits[j] := CASE WHEN flags >= 4 THEN CASE WHEN held THEN 0 ELSE -1 END
						WHEN cost = 0 OR held OR cardinality(g) / 3 < l.c / 1000 THEN 0
						ELSE g[cardinality(g) - 3 * (l.c / 1000) + 1] - clock END;
					ok := ok AND waits[j] = 0;
					CONTINUE;
				END IF;
				IF flags >= 2 AND cost > room THEN cost := least(cost, greatest(room - room % 1000, 1000)); END IF;
				costs[j] := cost;
				IF l.algorithm = 3 THEN
					waits[j] := {schema}.log_wait(l, (befores[j]).log, ws[j]::int, ss[j], clock, cost, wait);
					ok := ok AND waits[j] = 0;
				ELSIF l.algorithm = 0 AND wait = -1 AND NOT l.queued THEN
					ok := ok AND cost <= l.c AND ss[j] <= (l.c - cost) * l.p;
				ELSE
					ok := ok AND {schema}.admits(l, clock, ss[j], ts[j], ws[j], cost, wait);
				END IF;
			END LOOP;
			punished := '{}';
			FOR j IN 0 .. CASE WHEN penalties > 0 THEN charges ELSE 0 END - 1 LOOP
				k := program[first + 5 * j]; l := rates[program[first + 5 * j + 1]]; x := penalties + 3 * j; cost := costs[j];
				IF program[x] = 0 OR wait = -2 OR l.algorithm = 4 THEN
					punished := punished || '{0,0}';
					CONTINUE;
				END IF;
				IF l.algorithm = 3 THEN own := waits[j] = 0;
				ELSE own := {schema}.admits(l, clock, ss[j], ts[j], ws[j], cost, wait);
				END IF;
				penalty := {schema}.{bucket}_penalty(keys[k], clock);
				IF clock >= penalty[1] AND NOT own AND wait = -1 AND flags % 2 = 0 AND cost > 0
					AND cost <= l.c + (CASE WHEN l.queued THEN l.debt ELSE 0 END) THEN
					writes := true;
					penalty := {schema}.{bucket}_punish(keys[k], penalty, clock, shift, program[x], program[x + 1], program[x + 2], locked = 1);
				END IF;
				ok := ok AND clock >= penalty[1];
				punished := punished || CASE WHEN clock < penalty[1] THEN ARRAY[penalty[1] - clock, penalty[4]] ELSE '{0,0}' END;
			END LOOP;
			answer := ARRAY[CASE WHEN ok THEN 1 ELSE 0 END, clock];
			FOR j IN 0 .. charges - 1 LOOP
				k := program[first + 5 * j]; x := program[first + 5 * j + 1]; l := rates[x]; cost := costs[j];
				a := befores[j];
				IF l.algorithm = 4 THEN
					g := a.log;
					IF ok AND flags % 2 = 0 AND cost > 0 THEN
						g := {schema}.slots_without(g, program[first + 5 * j + 3], program[first + 5 * j + 4]);
						g := {schema}.slots_with(g, clock + l.p, program[first + 5 * j + 3], program[first + 5 * j + 4]);
						firsts[k] := lims[x]; spents[k] := cardinality(g) / 3 * 1000; as_ofs[k] := clock; prevs[k] := 0;
						logs[k] := ROW(g); others[k] := NULL; dues[k] := g[cardinality(g) - 2];
						dirty[k] := true; writes := true;
					END IF;
					answer := answer || ARRAY[cost, 2, cardinality(g) / 3, CASE WHEN cardinality(g) > 0 THEN g[1] - clock ELSE 0 END,
						CASE WHEN cardinality(g) > 0 THEN g[cardinality(g) - 2] - clock ELSE 0 END, waits[j]];
					CONTINUE;
				END IF;
				ttl := -program[first + 5 * j + 3];
				IF l.algorithm = 3 AND (NOT ok OR flags % 2 = 1) THEN
					answer := answer || ARRAY[cost, 1, ss[j],
						CASE WHEN ss[j] > 0 THEN ts[j] ELSE greatest(ts[j], clock) END - clock, waits[j], 0];
				ELSIF l.algorithm < 3 AND (NOT ok OR flags % 2 = 1 OR memo = 0 AND ttl <= 0) THEN
					answer := answer || ARRAY[cost, 0, a.spent, a.as_of, a.prev, 0];
				END IF;
				CONTINUE WHEN flags % 2 = 1 OR NOT ok AND NOT opened[j];
				IF ok THEN
					IF l.algorithm = 3 THEN
						SELECT * FROM {schema}.log_spent(l, coalesce(a.log, '{}'), ws[j]::int, greatest(clock, ts[j]), cost) INTO g, sum, t;
						a.spent := sum; a.as_of := t; a.prev := 0; a.log := g;
						answer := answer || ARRAY[cost, 1, sum, t - clock, 0, 0];
					ELSE
						a.spent := ss[j] + cost * CASE l.algorithm WHEN 0 THEN l.p ELSE 1 END;
						a.as_of := ts[j]; a.prev := ws[j]; a.log := NULL;
						IF memo > 0 OR ttl > 0 THEN answer := answer || ARRAY[cost, 0, a.spent, a.as_of, a.prev, 0]; END IF;
					END IF;
				ELSE
					cost := 0; -- written, so that the next take does not create it again
				END IF;
				IF several[j] THEN
					list := ARRAY[ROW(firsts[k], spents[k], as_ofs[k], prevs[k], (logs[k]).entries)::{schema}.account] || (others[k]).list;
					list := {schema}.written(a, list, keys[k], clock, cost, ss[j], wait);
					others[k] := CASE WHEN cardinality(list) > 1 THEN ROW(list[2:])::{schema}.accounts END;
					dues[k] := {schema}.due(list, keys[k]);
				ELSIF l.algorithm = 0 THEN dues[k] := {schema}.full_after(a.as_of, a.spent, l.n);
				ELSE dues[k] := {schema}.full_at(l, a.spent, a.as_of, a.prev);
				END IF;
				firsts[k] := a.lim; spents[k] := a.spent; as_ofs[k] := a.as_of; prevs[k] := a.prev;
				logs[k] := CASE WHEN a.log IS NOT NULL THEN ROW(a.log)::{schema}.sliding_log END;
				dirty[k] := true; writes := true;
				-- A hold, or a take that awaits its cancellation: see bucket.Row.WithAwait.
				IF cost > 0 AND (ttl > 0 OR ttl < 0 AND l.algorithm = 0) THEN
					list := ARRAY[ROW(a.lim, a.spent, a.as_of, a.prev, a.log)::{schema}.account] || (others[k]).list;
					was := ARRAY[{schema}.history(list, a.lim)];
					CONTINUE WHEN ttl < 0 AND was[1].lim IS NULL AND a.spent <= cost * l.p;
					list := {schema}.changed_history(list, keys[k], clock, a.lim, CASE WHEN ttl > 0 THEN 1 ELSE 4 END, a.as_of, a.spent,
						CASE WHEN ttl > 0 THEN clock + ttl ELSE -ttl END, program[first + 5 * j + 4] = 1, pg_current_xact_id()::text::bigint);
					others[k] := ROW(list[2:])::{schema}.accounts;
					dues[k] := {schema}.due(list, keys[k]);
					IF ttl > 0 THEN
						a := {schema}.history(list, a.lim);
						answer[cardinality(answer)] := a.log[1];
					END IF;
				END IF;
			END LOOP;
			answers := answers || answer || punished;
			IF memo > 0 AND ok AND locked = 1 THEN
				answer[1] := 2;
				called := '{}';
				FOR j IN 0 .. charges - 1 LOOP called := called || lims[program[first + 5 * j + 1]]; END LOOP;
				INSERT INTO {schema}.{bucket}_memory AS m (id, at, until, answer, limits)
					VALUES (ids[memo], clock, clock + shift + 120000000, answer, called)
					ON CONFLICT (id) DO UPDATE SET at = excluded.at, until = excluded.until, answer = excluded.answer, limits = excluded.limits;
			END IF;
		END LOOP;
		EXIT WHEN NOT writes AND (locked = 1 OR NOT due_now);
	END LOOP;
	IF writes AND cardinality(calendars) > 0 THEN -- drop the results of turned
		FOR k IN 1 .. cardinality(keys) LOOP
			IF strpos(firsts[k], '.') > 0 THEN logs[k] := NULL; END IF;
			was := (others[k]).list;
			FOR j IN 1 .. coalesce(cardinality(was), 0) LOOP
				CONTINUE WHEN was[j].lim NOT LIKE '1:%.%'; -- nor a history
				a := was[j]; a.log := NULL; was[j] := a;
			END LOOP;
			IF was IS NOT NULL THEN others[k] := ROW(was)::{schema}.accounts; END IF;
		END LOOP;
	END IF;
	IF writes THEN
		INSERT INTO {schema}.{bucket} AS b (key, lim, spent, as_of, full_at, prev, log, others)
			SELECT d.key, d.lim, d.spent, d.as_of, d.due + shift, nullif(d.prev, 0), d.log, d.others
			FROM unnest(keys, firsts, spents, as_ofs, prevs, dues, logs, others, dirty) AS d (key, lim, spent, as_of, prev, due, log, others, dirty)
			WHERE d.dirty
			ON CONFLICT (key) DO UPDATE SET lim = excluded.lim, spent = excluded.spent, as_of = excluded.as_of,
				full_at = excluded.full_at, prev = excluded.prev, log = excluded.log, others = excluded.others;
	END IF;
	SELECT array_agg(d.key) FROM unnest(keys, dirty) AS d (key, dirty) WHERE NOT d.dirty AND d.key = ANY (fresh) INTO fresh;
	IF fresh IS NOT NULL THEN
		PERFORM {schema}.{bucket}_delete_rows(fresh); -- denied takes leave no rows
	END IF;
END $$;

-- sweep deletes the rows of buckets that have been full for a second, and expired memory rows: up to most rows of
-- each. It reads this many pages of each table, starting at a part between 0 and 1. It skips locked rows, and
-- returns swept = -1 while another sweep runs. The result share is the fraction of the table that was read.
--
-- The second is for takes that have read the clock and are about to insert a row: they must find the takes of
-- others.
CREATE FUNCTION {schema}.{bucket}_sweep(part float8, pages bigint, most int, OUT swept bigint, OUT share float8)
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
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
			WHERE b.ctid >= format('(%s,0)', page)::tid AND b.ctid < format('(%s,0)', page + pages)::tid AND b.full_at < clock - 1000000
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

-- {bucket}_view shows the accounts of the buckets to operators. It escapes bytes of keys that are not text.
CREATE VIEW {schema}.{bucket}_view AS
	SELECT encode(b.key, 'escape') AS key, CASE (l.l).algorithm WHEN 2 THEN 'sliding window' WHEN 3 THEN 'sliding log' WHEN 4 THEN 'slots' WHEN 0 THEN 'bucket' WHEN 1 THEN 'bucket'
			ELSE CASE WHEN a.lim LIKE 'penalty %' THEN 'penalty' ELSE 'unknown' END END AS kind,
		round(a.spent::numeric / CASE (l.l).algorithm WHEN 0 THEN (l.l).p ELSE 1 END / 1000, 6) AS missing,
		to_timestamp(a.as_of / 1e6) AS as_of, to_timestamp(b.full_at / 1e6) AS full_at,
		round((l.l).c::numeric / 1000, 3) AS capacity, a.number
	FROM {schema}.{bucket} b
	CROSS JOIN LATERAL (SELECT 1 AS number, b.lim, b.spent, b.as_of
		UNION ALL SELECT 1 + o.number::int, o.lim, o.spent, o.as_of
		FROM unnest(b.others) WITH ORDINALITY AS o (lim, spent, as_of, prev, log, number) WHERE o.lim NOT LIKE 'held:%') AS a
	CROSS JOIN LATERAL (SELECT CASE WHEN a.lim LIKE '1:%' THEN {schema}.viewed_limit(a.lim, b.key) END AS l) AS l;
$each$, '{bucket}', name), '{unlogged}', CASE name WHEN 'bucket' THEN 'UNLOGGED' ELSE '' END);
END LOOP;
END $both$;
