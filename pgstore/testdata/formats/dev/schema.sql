BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;

SET LOCAL search_path = pg_catalog, pg_temp;
SET LOCAL idle_in_transaction_session_timeout = '10s';
SELECT pg_advisory_xact_lock(1835365477, 446837791);
SET LOCAL lock_timeout = '5s';

DO $mete$
BEGIN
	IF NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = 'formats_schema') THEN
		CREATE SCHEMA "formats_schema";
	END IF;
END
$mete$;

CREATE TABLE IF NOT EXISTS "formats_schema".migration (
	version    integer PRIMARY KEY,
	name       text NOT NULL,
	applied_at timestamptz NOT NULL DEFAULT now()
);

DO $mete$
BEGIN
	IF NOT EXISTS (SELECT FROM "formats_schema".migration WHERE version = 1) THEN
		EXECUTE $migration$
-- SPDX-License-Identifier: Apache-2.0
--
-- Buckets and all operations on them. The arithmetic is that in package bucket, in bigint. The part after the line
-- of dashes exists twice: for the unlogged table "formats_schema".bucket and the logged table "formats_schema".bucket_durable.
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

CREATE FUNCTION "formats_schema".microseconds() RETURNS bigint
LANGUAGE sql VOLATILE PARALLEL SAFE
RETURN (date_part('epoch', clock_timestamp()) * 1000000)::bigint;

-- ceiling returns x / y rounded up, for x >= 0.
CREATE FUNCTION "formats_schema".ceiling(x bigint, y bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN x = 0 THEN 0 ELSE (x - 1) / y + 1 END;

-- refilled returns the spent tokens of a token bucket at clock.
CREATE FUNCTION "formats_schema".refilled(spent bigint, as_of bigint, clock bigint, n bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN clock - as_of > spent / n THEN 0 ELSE spent - greatest(clock - as_of, 0) * n END;

-- earliest returns the first instant at which a token bucket with capacity c admits cost, or 0 if it already does
-- at as_of.
CREATE FUNCTION "formats_schema".earliest(spent bigint, as_of bigint, cost bigint, c bigint, n bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN spent + cost <= c THEN 0 ELSE as_of + (spent + cost - c - 1) / n + 1 END;

-- full_after returns an instant after which a token bucket is full, if it has spent s at t.
CREATE FUNCTION "formats_schema".full_after(t bigint, s bigint, n bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN t + s / n + 1;

-- into returns the elapsed part of a window of length p in 4096ths. It computes two digits of base 64, because
-- the product can exceed a bigint.
CREATE FUNCTION "formats_schema".into(elapsed bigint, p bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN elapsed * 64 / p * 64 + elapsed * 64 % p * 64 / p;

-- step returns the start of the interval that contains t.
CREATE FUNCTION "formats_schema".step(t bigint, start bigint, p bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN t - ((t - start) % p + p) % p;

-- A rate_limit is a limit of package bucket. The algorithm is 0 (continuous), 1 (stepped), 2 (sliding window),
-- 3 (sliding log) or 4 (concurrency). It has capacity c, refills n every p microseconds, and allows up to debt reserved
-- tokens. A stepped limit with a calendar refills at the starts of its windows, which a call carries: see turned.
CREATE TYPE "formats_schema".rate_limit AS (
	algorithm bigint, c bigint, n bigint, p bigint, debt bigint, start bigint, first boolean, queued boolean,
	calendar boolean, starts bigint[]);

CREATE TYPE "formats_schema".account AS (lim text, spent bigint, as_of bigint, prev bigint, log bigint[]);

-- wraps account[], because PostgreSQL has no arrays of arrays.
CREATE TYPE "formats_schema".accounts AS (list "formats_schema".account[]);
CREATE TYPE "formats_schema".sliding_log AS (entries bigint[]); -- t1, c1, t2, c2 …, oldest first

-- limit_of parses a limit of a row. The expression has no counted repetitions, which would make it ten times slower.
CREATE FUNCTION "formats_schema".limit_of(lim text, key bytea) RETURNS "formats_schema".rate_limit
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
			RETURN ROW((v[5] & 3) | ((v[5] & 32) >> 3), v[1], v[3], v[4], v[2], v[5] >> 8, v[5] >> 2 & 3 = 2, v[5] & 16 > 0, calendar, NULL)::"formats_schema".rate_limit;
		ELSIF v = '{0,0,0,0,0}' THEN -- the limit that holds nothing
			RETURN '(0,0,1,1,0,0,f,f,f,)'::"formats_schema".rate_limit;
		END IF;
	END IF;
	RAISE EXCEPTION USING ERRCODE = 'MT001',
		MESSAGE = format('key %L has no bucket in format version 1: limit %L', encode(key, 'escape'), lim);
END $$;

-- viewed_limit is limit_of for views, which run with the search path of their reader.
CREATE FUNCTION "formats_schema".viewed_limit(lim text, key bytea) RETURNS "formats_schema".rate_limit
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	RETURN "formats_schema".limit_of(lim, key);
END $$;

-- window_of returns the position of the window that contains t among starts of windows, or 0.
CREATE FUNCTION "formats_schema".window_of(starts bigint[], t bigint) RETURNS int
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	i int := cardinality(starts);
BEGIN
	WHILE i > 0 AND starts[i] > t LOOP i := i - 1; END LOOP;
	RETURN coalesce(i, 0);
END $$;

-- arrival returns the start of the window that is this many windows after t. If starts does not have it, the result is
-- later: no windows exceed their mean length by four days together.
CREATE FUNCTION "formats_schema".arrival(l "formats_schema".rate_limit, times bigint, t bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN coalesce((l).starts["formats_schema".window_of((l).starts, t) + least(times, 100000)::int],
	t + least(times, (1::bigint << 60) / (l).p) * (l).p + 345600000000);

-- turned returns the spent tokens of a calendar account in the window that contains clock, and the instant for which
-- they are valid. It returns NULL if starts lacks windows. While take runs, it keeps the result in the column log.
CREATE FUNCTION "formats_schema".turned(l "formats_schema".rate_limit, a "formats_schema".account, starts bigint[], clock bigint) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	i int := "formats_schema".window_of(starts, clock);
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
CREATE FUNCTION "formats_schema".starts_of(calendars text[], windows bigint[], lim text) RETURNS bigint[]
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
CREATE FUNCTION "formats_schema".refills(l "formats_schema".rate_limit, t bigint, at bigint) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	most CONSTANT bigint := 9007199254740991;
	times bigint := greatest(at - t, 0);
BEGIN
	IF l.calendar THEN
		times := CASE WHEN "formats_schema".window_of(l.starts, t) = 0 THEN most
			ELSE greatest("formats_schema".window_of(l.starts, at) - "formats_schema".window_of(l.starts, t), 0) END;
	ELSIF l.algorithm = 1 THEN times := times / l.p;
	END IF;
	RETURN CASE WHEN times > most / l.n THEN most ELSE times * l.n END;
END $$;

-- look reads an account other than a log at clock. It returns the spent tokens (s), the instant for which they are
-- valid (t), and the part that belongs to the previous window (w).
CREATE FUNCTION "formats_schema".look(l "formats_schema".rate_limit, clock bigint,
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
			IF (begun - as_of) / p >= "formats_schema".ceiling(s, n) THEN s := 0; RETURN; END IF;
			t := begun;
			begun := as_of;
		ELSE
			t := "formats_schema".step(t, l.start, p);
			IF s = 0 THEN RETURN; END IF;
			begun := "formats_schema".step(as_of, l.start, p);
			IF begun < as_of THEN begun := begun + p; END IF;
			t := greatest(t, begun);
			IF (t - begun) / p >= "formats_schema".ceiling(s, n) THEN s := 0; RETURN; END IF;
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
CREATE FUNCTION "formats_schema".admits(l "formats_schema".rate_limit, clock bigint,
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
			(w <= room OR greatest(4096 - room * 4096 / w, 0) <= "formats_schema".into(greatest(clock - t, 0), l.p));
	END IF;
	IF room < -l.debt THEN RETURN false; END IF;
	IF wait = -1 THEN wait := CASE WHEN l.queued THEN -2 ELSE 0 END; END IF;
	IF l.algorithm = 1 THEN
		IF wait = -2 THEN RETURN room + l.debt >= 0 AND s <= room + l.debt; END IF;
		IF room < 0 THEN RETURN false; END IF;
		IF s <= room THEN RETURN true; END IF;
		IF wait > 0 AND s > room + l.debt THEN RETURN false; END IF;
		IF l.calendar THEN RETURN "formats_schema".arrival(l, "formats_schema".ceiling(s - room, l.n), t) - greatest(t, clock) <= wait; END IF;
		RETURN "formats_schema".ceiling(s - room, l.n) <= (wait - least(t - clock, 0)) / l.p;
	END IF;
	loan := l.debt * l.p;
	IF wait >= 0 AND wait < "formats_schema".ceiling(loan, l.n) THEN loan := wait * l.n; END IF;
	RETURN room * l.p + loan >= 0 AND s <= room * l.p + loan;
END $$;

-- remaining returns the remaining tokens of a bucket that has spent s at t.
CREATE FUNCTION "formats_schema".remaining(l "formats_schema".rate_limit, clock bigint, s bigint, t bigint, w bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN greatest(0, CASE l.algorithm
		WHEN 0 THEN l.c - "formats_schema".ceiling(s, l.p)
		WHEN 1 THEN l.c - s
		ELSE l.c - (s - w) - "formats_schema".ceiling(w * (4096 - "formats_schema".into(greatest(clock - t, 0), l.p)), 4096) END);

-- full_at returns the time when a bucket is full that has spent s at t, at most 36,000 years after t. A log is
-- full one window after its last instant. For calendars, the result may be days later.
CREATE FUNCTION "formats_schema".full_at(l "formats_schema".rate_limit, s bigint, t bigint, w bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN l.calendar AND s > 0 THEN "formats_schema".arrival(l, "formats_schema".ceiling(s, l.n), t) ELSE
	t + CASE WHEN s = 0 THEN 0 ELSE CASE l.algorithm
		WHEN 0 THEN "formats_schema".ceiling(s, l.n)
		WHEN 1 THEN least("formats_schema".ceiling(s, l.n), (1::bigint << 60) / l.p) * l.p
		WHEN 3 THEN l.p
		WHEN 4 THEN 0
		ELSE CASE WHEN s > w THEN 2 * l.p ELSE l.p END END END END;

CREATE FUNCTION "formats_schema".log_sum(g bigint[]) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
	SELECT coalesce(sum(c), 0)::bigint FROM unnest(g) WITH ORDINALITY AS e (c, i) WHERE i % 2 = 0;
END;

-- log_newest returns the last instant of a log, or 0 if it is empty.
CREATE FUNCTION "formats_schema".log_newest(g bigint[]) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN coalesce(g[cardinality(g) - 1], 0);

-- log_live returns the number of expired entries at t, and the sum of the other entries.
CREATE FUNCTION "formats_schema".log_live(l "formats_schema".rate_limit, g bigint[], t bigint, OUT gone int, OUT sum bigint)
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	count CONSTANT int := cardinality(g) / 2;
BEGIN
	gone := 0;
	WHILE gone < count AND g[2 * gone + 1] <= t - l.p LOOP gone := gone + 1; END LOOP;
	sum := "formats_schema".log_sum(CASE WHEN gone = 0 THEN g ELSE g[2 * gone + 1 :] END);
END $$;

-- log_wait returns the wait until a log with gone expired entries and the given sum admits cost: -1 is never.
CREATE FUNCTION "formats_schema".log_wait(l "formats_schema".rate_limit, g bigint[], gone int, sum bigint, clock bigint, cost bigint, wait bigint) RETURNS bigint
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
CREATE FUNCTION "formats_schema".log_spent(l "formats_schema".rate_limit, g bigint[], gone int, at bigint, cost bigint, OUT h bigint[], OUT sum bigint, OUT t bigint)
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
	sum := "formats_schema".log_sum(h);
END $$;

-- log_refunded returns the log without its oldest costs.
CREATE FUNCTION "formats_schema".log_refunded(l "formats_schema".rate_limit, g bigint[], at bigint, back bigint, OUT h bigint[], OUT sum bigint)
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	i int;
BEGIN
	SELECT * FROM "formats_schema".log_live(l, g, at) INTO i, sum;
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
CREATE FUNCTION "formats_schema".log_canceled(l "formats_schema".rate_limit, g bigint[], at bigint, back bigint, taken_at bigint, OUT h bigint[], OUT sum bigint)
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	i int;
BEGIN
	SELECT * FROM "formats_schema".log_live(l, g, at) INTO i, sum;
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
CREATE FUNCTION "formats_schema".slots_live(g bigint[], clock bigint) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	gone int := 0;
	size CONSTANT int := coalesce(cardinality(g), 0);
BEGIN
	WHILE 3 * gone < size AND g[3 * gone + 1] <= clock LOOP gone := gone + 1; END LOOP;
	RETURN CASE WHEN size = 0 THEN '{}' WHEN gone = 0 THEN g ELSE g[3 * gone + 1 :] END;
END $$;

-- slots_without returns the slots except the one with this ID. It returns all of them if there is none.
CREATE FUNCTION "formats_schema".slots_without(g bigint[], high bigint, low bigint) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
	FOR i IN REVERSE coalesce(cardinality(g), 0) / 3 .. 1 LOOP
		IF g[3 * i] = low AND g[3 * i - 1] = high THEN RETURN g[: 3 * i - 3] || g[3 * i + 1 :]; END IF;
	END LOOP;
	RETURN g;
END $$;

-- slots_with returns the slots with one more.
CREATE FUNCTION "formats_schema".slots_with(g bigint[], till bigint, high bigint, low bigint) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	i int := cardinality(g) / 3;
BEGIN
	WHILE i > 0 AND g[3 * i - 2] > till LOOP i := i - 1; END LOOP;
	RETURN g[: 3 * i] || ARRAY[till, high, low] || g[3 * i + 1 :];
END $$;

-- missing returns the spent tokens of an account at clock in thousandths (m), and the results s, t and w of look.
-- For a log, s is the sum of its entries, t its instant at clock, and w the number of expired entries.
CREATE FUNCTION "formats_schema".missing(l "formats_schema".rate_limit, a "formats_schema".account, clock bigint,
	OUT m bigint, OUT s bigint, OUT t bigint, OUT w bigint)
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
	IF l.algorithm = 3 THEN
		t := greatest(clock, "formats_schema".log_newest(a.log));
		SELECT x.gone, x.sum FROM "formats_schema".log_live(l, coalesce(a.log, '{}'), t) AS x INTO w, s;
		m := s;
		RETURN;
	END IF;
	SELECT x.s, x.t, x.w FROM "formats_schema".look(l, clock, a.spent, a.as_of, a.prev, a.log) AS x INTO s, t, w;
	m := CASE l.algorithm WHEN 0 THEN "formats_schema".ceiling(s, l.p) WHEN 1 THEN s
		ELSE s - w + "formats_schema".ceiling(w * (4096 - "formats_schema".into(greatest(clock - t, 0), l.p)), 4096) END;
END $$;

-- opened returns the account of a limit in a row. If the row does not have it, the new account starts with the
-- state of the account with the most spent tokens. A new account is fresh if it has spent anything.
CREATE FUNCTION "formats_schema".opened(l "formats_schema".rate_limit, asked text, list "formats_schema".account[], key bytea, clock bigint,
	OUT own "formats_schema".account, OUT fresh boolean)
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	a "formats_schema".account;
	m "formats_schema".rate_limit;
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
		m := "formats_schema".limit_of(a.lim, key);
		at := greatest(at, a.as_of);
		SELECT y.m FROM "formats_schema".missing(m, a, clock) AS y INTO x;
		IF x > most THEN most := x; holds := m.c; END IF;
	END LOOP;
	fresh := most > 0;
	most := least(most, holds, l.c) + least(greatest(most - holds, 0), l.debt);
	own := ROW(asked, most, at, 0, NULL);
	IF l.algorithm = 0 THEN own.spent := most * l.p;
	ELSIF l.calendar THEN own.as_of := coalesce(l.starts["formats_schema".window_of(l.starts, at)], at);
	ELSIF l.algorithm = 1 THEN
		IF NOT l.first THEN own.as_of := "formats_schema".step(at, l.start, l.p); END IF;
	ELSIF l.algorithm = 2 THEN own.as_of := greatest(at, 0) - greatest(at, 0) % l.p;
	ELSIF most > 0 THEN own.log := ARRAY[at, most];
	END IF;
END $$;

-- written returns the accounts of a row after a decision about cost. The account that decided comes first. Two
-- other accounts follow, which are charged the same cost, at most until they are empty. If all others are full,
-- the row drops them. Histories follow: see 0006_hold.sql. The account that decided lacked s before, and wait is as in
-- admits.
CREATE FUNCTION "formats_schema".written(own "formats_schema".account, list "formats_schema".account[], key bytea, clock bigint, cost bigint, s bigint, wait bigint) RETURNS "formats_schema".account[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	a "formats_schema".account;
	m "formats_schema".rate_limit;
	r record;
	part bigint;
	kept "formats_schema".account[] := ARRAY[own];
	was "formats_schema".account; h "formats_schema".account;
	before bigint;
	histories "formats_schema".account[] := '{}';
	others boolean := false;
BEGIN
	FOREACH a IN ARRAY list LOOP
		IF a.lim = own.lim THEN before := a.as_of; END IF;
		IF a.lim = 'held:' || own.lim THEN -- after its account
			m := "formats_schema".limit_of(own.lim, key);
			h := "formats_schema".kept_history(m, a, clock, before, s);
			IF cost > 0 THEN h := "formats_schema".noted(m, h, s, own.spent, cost, wait, own.as_of); END IF;
			IF h.lim IS NOT NULL THEN histories := histories || h; END IF;
		END IF;
		CONTINUE WHEN a.lim = own.lim OR a.lim LIKE 'held:%' OR cardinality(kept) = 3;
		was := a;
		m := "formats_schema".limit_of(a.lim, key);
		SELECT * FROM "formats_schema".missing(m, a, clock) INTO r;
		others := others OR r.s > 0;
		part := least(cost, m.c - r.m);
		IF part > 0 THEN
			IF m.algorithm = 3 THEN
				SELECT x.h, x.sum, x.t FROM "formats_schema".log_spent(m, coalesce(a.log, '{}'), r.w::int, r.t, part) AS x INTO a.log, a.spent, a.as_of;
			ELSE
				a.spent := r.s + part * CASE m.algorithm WHEN 0 THEN m.p ELSE 1 END;
				a.as_of := r.t;
				a.prev := r.w;
				a.log := NULL;
			END IF;
		END IF;
		kept := kept || a;
		h := "formats_schema".history(list, a.lim);
		IF h.lim IS NOT NULL THEN
			h := "formats_schema".kept_history(m, h, clock, was.as_of, r.s);
			IF part > 0 THEN h := "formats_schema".noted(m, h, r.s, 0, part, -2, 0); END IF;
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
CREATE FUNCTION "formats_schema".refunded(l "formats_schema".rate_limit, a "formats_schema".account, clock bigint, back bigint) RETURNS "formats_schema".account
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	r record;
	part bigint;
BEGIN
	IF back <= 0 OR a.spent = 0 THEN RETURN a; END IF;
	IF l.algorithm = 3 THEN
		r := "formats_schema".log_refunded(l, a.log, greatest(clock, "formats_schema".log_newest(a.log)), back);
		a.as_of := CASE WHEN r.sum = 0 THEN greatest(clock, "formats_schema".log_newest(a.log)) ELSE "formats_schema".log_newest(a.log) END;
		a.log := r.h;
		a.spent := r.sum;
		RETURN a;
	END IF;
	r := "formats_schema".look(l, clock, a.spent, a.as_of, a.prev, a.log);
	a.spent := r.s; a.as_of := r.t; a.prev := r.w; a.log := NULL;
	IF l.algorithm = 2 THEN -- this window first
		part := least(back, a.spent - a.prev);
		a.prev := a.prev - least(back - part, a.prev);
		a.spent := r.s - part - (r.w - a.prev);
	ELSE
		part := CASE l.algorithm WHEN 0 THEN l.p ELSE 1 END;
		a.spent := CASE WHEN back >= "formats_schema".ceiling(a.spent, part) THEN 0 ELSE a.spent - back * part END;
	END IF;
	RETURN a;
END $$;

-- canceled returns the account after a take was canceled, fully or partly. It exceeds no limit: see
-- bucket.Limit.Cancel. The parameters cost, taken_at and missed are the take's cost, its instant, and the spent
-- tokens after it.
CREATE FUNCTION "formats_schema".canceled(l "formats_schema".rate_limit, a "formats_schema".account, clock bigint, back bigint,
	cost bigint, taken_at bigint, missed bigint) RETURNS "formats_schema".account
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
		r := "formats_schema".log_canceled(l, a.log, greatest(clock, "formats_schema".log_newest(a.log)), back, taken_at);
		IF r.h IS NOT NULL THEN
			a.as_of := CASE WHEN r.sum = 0 THEN greatest(clock, "formats_schema".log_newest(a.log)) ELSE "formats_schema".log_newest(r.h) END;
			a.log := r.h;
			a.spent := r.sum;
		END IF;
		RETURN a;
	END IF;
	r := "formats_schema".look(l, clock, a.spent, a.as_of, a.prev, a.log);
	IF l.algorithm = 2 THEN
		back := least(back, r.s - r.w);
		IF back > 0 AND r.t = taken_at THEN
			a.spent := r.s - back; a.as_of := r.t; a.prev := r.w;
		END IF;
		RETURN a;
	END IF;
	came := "formats_schema".refills(l, taken_at, r.t);
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
CREATE FUNCTION "formats_schema".slots_check(lim text, key bytea, slots boolean) RETURNS void
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	l CONSTANT "formats_schema".rate_limit := "formats_schema".limit_of(lim, key);
BEGIN
	IF (l.algorithm = 4) <> slots THEN
		RAISE EXCEPTION USING ERRCODE = 'MT001',
			MESSAGE = format('key %L holds %s', encode(key, 'escape'), CASE WHEN slots THEN 'a bucket, not slots' ELSE 'slots, not a bucket' END);
	END IF;
END $$;

-- due returns the time when all accounts are full and all holds have expired.
CREATE FUNCTION "formats_schema".due(list "formats_schema".account[], key bytea) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	a "formats_schema".account;
	l "formats_schema".rate_limit;
	latest bigint;
BEGIN
	FOREACH a IN ARRAY list LOOP
		IF a.lim LIKE 'held:%' THEN
			latest := greatest(latest, a.spent);
			CONTINUE;
		END IF;
		l := "formats_schema".limit_of(a.lim, key); -- so that PostgreSQL inlines full_at
		latest := greatest(latest, "formats_schema".full_at(l, a.spent, a.as_of, a.prev));
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

CREATE {unlogged} TABLE "formats_schema".{bucket} (
	spent   bigint NOT NULL,
	as_of   bigint NOT NULL,
	full_at bigint NOT NULL,
	took    bigint NOT NULL DEFAULT 0, -- scratch: amount of the last call; negative if the call inserted the row
	prev    bigint,
	lim     text COLLATE "C" NOT NULL,
	log     bigint[],
	others  "formats_schema".account[],
	key     bytea PRIMARY KEY
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000,
	autovacuum_vacuum_insert_scale_factor = 0.2, autovacuum_vacuum_cost_delay = 0);
ALTER TABLE "formats_schema".{bucket} ALTER log SET STORAGE EXTERNAL; -- compression costs too much for frequent changes

-- Takes that are remembered by ID: the answer, and the limits at that time. Refunds are remembered by their own
-- IDs, without an answer.
CREATE {unlogged} TABLE "formats_schema".{bucket}_memory (
	id     bytea PRIMARY KEY,
	at     bigint NOT NULL, -- by the clock of the take
	until  bigint NOT NULL, -- by the server's clock; the row can be deleted then
	answer bigint[] NOT NULL,
	limits text[] NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- states returns the existing rows of keys with their positions. It looks up each key separately, independent of
-- the planner's estimate of the table size.
CREATE FUNCTION "formats_schema".{bucket}_states(keys bytea[])
RETURNS TABLE (i bigint, lim text, spent bigint, as_of bigint, prev bigint, log bigint[], others "formats_schema".account[])
LANGUAGE plpgsql STABLE ROWS 10
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_bitmapscan = off SET jit = off AS $$
#variable_conflict use_column
BEGIN
	RETURN QUERY SELECT k.i, b.lim, b.spent, b.as_of, b.prev, b.log, b.others
		FROM unnest(keys) WITH ORDINALITY AS k (key, i) JOIN "formats_schema".{bucket} b ON b.key = k.key;
END $$;

-- late sets as_of of a row that the call has just inserted to now, and returns it. A call that waited before the
-- insert has read the clock too early.
CREATE FUNCTION "formats_schema".{bucket}_late(k bytea) RETURNS bigint
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
	clock CONSTANT bigint := "formats_schema".microseconds();
BEGIN
	UPDATE "formats_schema".{bucket} b SET as_of = clock, full_at = b.full_at + clock - b.as_of WHERE b.key = k;
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
CREATE FUNCTION "formats_schema".{bucket}_take_one(INOUT clock bigint, k bytea, asked text, amount bigint, c bigint, n bigint,
	cost bigint, look boolean, OUT took bigint, OUT spent bigint, OUT as_of bigint)
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
	given CONSTANT boolean := clock >= 0;
	shift bigint := 0;
	own boolean;
BEGIN
	IF given THEN shift := "formats_schema".microseconds() - clock + 3600000000; END IF;
	FOR try IN 1..3 LOOP
		IF NOT given THEN clock := "formats_schema".microseconds(); END IF;
		IF look OR try > 1 THEN
			SELECT s.spent, s.as_of, s.lim = asked AND s.others IS NULL FROM "formats_schema".{bucket}_states(ARRAY[k]) s INTO spent, as_of, own;
			IF FOUND THEN
				took := -1;
				IF NOT own THEN RETURN; END IF;
				IF "formats_schema".refilled(spent, as_of, clock, n) + cost > c THEN
					took := 0;
					RETURN;
				END IF;
			END IF;
		END IF;
		INSERT INTO "formats_schema".{bucket} AS b (key, lim, spent, as_of, full_at, took)
			VALUES (k, asked, amount, clock, "formats_schema".full_after(clock, amount, n) + shift, -1)
			ON CONFLICT (key) DO UPDATE SET (spent, as_of, full_at, took) = (
				SELECT z.s + z.took, z.t, "formats_schema".full_after(z.t, z.s + z.took, n) + shift, z.took
				FROM (SELECT y.s, y.t, least(amount, (c - y.s) / cost * cost) AS took
				FROM (SELECT "formats_schema".refilled(b.spent, b.as_of, x.t, n) AS s, x.t
				FROM (SELECT greatest(CASE WHEN given THEN clock ELSE "formats_schema".microseconds() END, b.as_of,
					"formats_schema".earliest(b.spent, b.as_of, cost, c, n)) AS t OFFSET 0) x OFFSET 0) y OFFSET 0) z)
			WHERE b.lim = asked AND b.others IS NULL AND
				CASE WHEN given THEN clock ELSE "formats_schema".microseconds() END >= "formats_schema".earliest(b.spent, b.as_of, cost, c, n)
			RETURNING b.took, b.spent, b.as_of INTO took, spent, as_of;
		IF FOUND THEN
			IF NOT given THEN clock := "formats_schema".microseconds(); END IF;
			IF took < 0 THEN
				took := amount;
				IF NOT given AND clock > as_of + 1000 THEN as_of := "formats_schema".{bucket}_late(k); END IF;
			END IF;
			RETURN;
		END IF;
	END LOOP;
	took := -1;
END $$;

-- take_many is take_one for any number of keys in ascending order. Each key has an amount, and the position of
-- its limit among lims, c, n and cost. It returns a row for each key that it could decide; took is 0 for a
-- denial.
CREATE FUNCTION "formats_schema".{bucket}_take_many(clock bigint, keys bytea[], which bigint[], amounts bigint[],
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
	IF given THEN shift := "formats_schema".microseconds() - clock + 3600000000;
	ELSE clock := "formats_schema".microseconds(); END IF;
	IF look THEN
		RETURN QUERY SELECT keys[s.i], 0::bigint, s.spent, s.as_of, clock FROM "formats_schema".{bucket}_states(keys) s
			WHERE s.lim = lims[which[s.i]] AND s.others IS NULL AND
				"formats_schema".refilled(s.spent, s.as_of, clock, n[which[s.i]]) + cost[which[s.i]] > c[which[s.i]];
		SELECT array_agg(k.key), array_agg(k.which), array_agg(k.amount)
			FROM unnest(keys, which, amounts) WITH ORDINALITY AS k (key, which, amount, i)
			LEFT JOIN "formats_schema".{bucket}_states(keys) s ON s.i = k.i
			WHERE s.i IS NULL OR s.lim = lims[k.which] AND s.others IS NULL AND
				"formats_schema".refilled(s.spent, s.as_of, clock, n[k.which]) + cost[k.which] <= c[k.which]
			INTO keys, which, amounts;
		IF keys IS NULL THEN RETURN; END IF;
	END IF;
	-- took passes the position of the limit. A new row keeps it, because its amount is the spent tokens.
	RETURN QUERY INSERT INTO "formats_schema".{bucket} AS b (key, lim, spent, as_of, full_at, took)
		SELECT k.key, lims[k.which], k.amount, CASE WHEN given THEN clock ELSE "formats_schema".microseconds() END,
			"formats_schema".full_after(CASE WHEN given THEN clock ELSE "formats_schema".microseconds() END, k.amount, n[k.which]) + shift, k.which - 1000000
		FROM unnest(keys, which, amounts) AS k (key, which, amount)
		ON CONFLICT (key) DO UPDATE SET
			(spent, as_of, full_at, took) = (SELECT z.s + z.took, z.t, "formats_schema".full_after(z.t, z.s + z.took, z.n) + shift, z.took
				FROM (SELECT y.s, y.t, y.n, least(excluded.spent, (y.c - y.s) / y.cost * y.cost) AS took
				FROM (SELECT x.t, x.n, x.c, x.cost, "formats_schema".refilled(b.spent, b.as_of, x.t, x.n) AS s
				FROM (SELECT u.n, u.c, u.cost, greatest(CASE WHEN given THEN clock ELSE "formats_schema".microseconds() END, b.as_of,
					"formats_schema".earliest(b.spent, b.as_of, u.cost, u.c, u.n)) AS t
				FROM (SELECT c[w.w] AS c, n[w.w] AS n, cost[w.w] AS cost
				FROM (SELECT excluded.took + 1000000 AS w OFFSET 0) w OFFSET 0) u OFFSET 0) x OFFSET 0) y OFFSET 0) z)
		WHERE b.lim = excluded.lim AND b.others IS NULL AND CASE WHEN given THEN clock ELSE "formats_schema".microseconds() END >=
			"formats_schema".earliest(b.spent, b.as_of, cost[excluded.took + 1000000], c[excluded.took + 1000000], n[excluded.took + 1000000])
		RETURNING b.key, CASE WHEN b.took < 0 THEN b.spent ELSE b.took END, b.spent,
			CASE WHEN b.took < 0 AND NOT given AND "formats_schema".microseconds() > b.as_of + 1000 THEN "formats_schema".{bucket}_late(b.key) ELSE b.as_of END,
			CASE WHEN given THEN clock ELSE "formats_schema".microseconds() END;
	GET DIAGNOSTICS done = ROW_COUNT;
	IF done < cardinality(keys) THEN -- by the current states; for a charged key, the first result row counts
		IF NOT given THEN clock := "formats_schema".microseconds(); END IF;
		RETURN QUERY SELECT keys[s.i], 0::bigint, s.spent, s.as_of, clock FROM "formats_schema".{bucket}_states(keys) s
			WHERE s.lim = lims[which[s.i]] AND s.others IS NULL AND
				"formats_schema".refilled(s.spent, s.as_of, clock, n[which[s.i]]) + cost[which[s.i]] > c[which[s.i]];
	END IF;
END $$;

-- lock locks the rows of keys in ascending order. It inserts missing rows and returns their keys; the caller must
-- write or delete them.
CREATE FUNCTION "formats_schema".{bucket}_lock(keys bytea[]) RETURNS bytea[]
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
	fresh bytea[];
BEGIN
	WITH made AS (
		INSERT INTO "formats_schema".{bucket} AS b (key, lim, spent, as_of, full_at)
			SELECT k, '', 0, 0, "formats_schema".microseconds() + 3600000000 FROM unnest(keys) AS k
			ON CONFLICT (key) DO UPDATE SET took = 0 WHERE false
			RETURNING b.key)
	SELECT array_agg(made.key) FROM made INTO fresh;
	RETURN fresh;
END $$;

-- delete_rows deletes locked rows, so that their buckets are full.
CREATE FUNCTION "formats_schema".{bucket}_delete_rows(keys bytea[]) RETURNS void
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off AS $$
DECLARE
	k bytea;
BEGIN
	FOREACH k IN ARRAY keys LOOP
		DELETE FROM "formats_schema".{bucket} b WHERE b.key = k;
	END LOOP;
END $$;

-- reset fills buckets atomically: a take of several buckets sees all of them before the reset, or all of them
-- after it. Their holds return nothing afterwards: see 0006_hold.sql.
CREATE FUNCTION "formats_schema".{bucket}_reset(keys bytea[]) RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off AS $$
BEGIN
	PERFORM "formats_schema".{bucket}_lock(keys);
	DELETE FROM "formats_schema".{bucket}_hold_due d WHERE d.key = ANY (keys);
	PERFORM "formats_schema".{bucket}_delete_rows(keys || ARRAY(SELECT k || convert_to('|#penalty', 'UTF8') FROM unnest(keys) AS k));
END $$;

-- penalty returns the penalty of a bucket's key at clock, as four numbers. They are 0 without a penalty.
CREATE FUNCTION "formats_schema".{bucket}_penalty(k bytea, clock bigint) RETURNS bigint[]
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off AS $$
DECLARE
	r record;
BEGIN
	SELECT b.lim, b.log FROM "formats_schema".{bucket} b WHERE b.key = k || convert_to('|#penalty', 'UTF8') INTO r;
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
CREATE FUNCTION "formats_schema".{bucket}_punish(k bytea, earlier bigint[], clock bigint, shift bigint,
	first bigint, most bigint, factor bigint, write boolean, OUT penalty bigint[])
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
	length CONSTANT bigint := least(greatest(earlier[2] / 1000 * factor + earlier[2] % 1000 * factor / 1000, first), most);
BEGIN
	penalty := ARRAY[clock + length, length, clock + length + CASE WHEN first < most THEN most ELSE 0 END, earlier[4] + 1];
	IF write THEN
		INSERT INTO "formats_schema".{bucket} AS b (key, lim, spent, as_of, full_at, log)
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
CREATE FUNCTION "formats_schema".{bucket}_take(clock bigint, keys bytea[], lims text[], numbers bigint[], program bigint[],
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
	logs "formats_schema".sliding_log[];
	others "formats_schema".accounts[];
	list "formats_schema".account[]; was "formats_schema".account[];
	a "formats_schema".account;
	fresh bytea[]; -- rows inserted to be locked
	writes boolean := false;
	due_now boolean; -- a row has an expired hold to refund
	due_needs bigint[]; due_limits text[]; -- windows that these refunds need
	turning boolean; -- a row may have an account of a calendar
	r record;
	rates "formats_schema".rate_limit[];
	l "formats_schema".rate_limit;
	i int; j int; k int; x int; first int; charges int;
	memo int; flags bigint; wait bigint; cost bigint; room bigint; due bigint;
	ttl bigint; -- of a hold; negative if the take awaits its settlement
	ok boolean; held boolean;
	s bigint; t bigint; w bigint;
	-- The accounts of an operation before it, and their state at the clock.
	befores "formats_schema".account[]; opened boolean[]; several boolean[];
	costs bigint[]; ss bigint[]; ts bigint[]; ws bigint[]; waits bigint[];
	g bigint[]; sum bigint;
	answer bigint[]; called text[];
	penalties int; penalty bigint[]; punished bigint[]; own boolean; -- of the next take
	starts "formats_schema".sliding_log[]; reaches bigint[]; -- of calendars
	newest bigint;
BEGIN
	j := 1;
	FOR i IN 1 .. cardinality(calendars) LOOP
		starts[i] := ROW(windows[j + 2 : j + 1 + windows[j]]);
		reaches[i] := windows[j + 1];
		j := j + 2 + windows[j];
	END LOOP;
	IF given THEN shift := "formats_schema".microseconds() - clock + 3600000000; END IF;
	FOR i IN 1 .. cardinality(numbers) / 8 LOOP
		j := 8 * i;
		k := array_position(calendars, lims[i]);
		rates[i] := ROW(numbers[j - 7], numbers[j - 6], numbers[j - 5], numbers[j - 4], numbers[j - 3], numbers[j - 2],
			numbers[j - 1] = 1, numbers[j] = 1, k IS NOT NULL, (starts[k]).entries);
	END LOOP;
	-- The first pass uses no locks. If it writes nothing, its result is the answer.
	FOR locked IN CASE WHEN look THEN 0 ELSE 1 END .. 1 LOOP
		IF locked = 1 THEN
			fresh := "formats_schema".{bucket}_lock(keys);
		END IF;
		IF NOT given THEN clock := "formats_schema".microseconds(); END IF;
		newest := clock; turning := false; due_now := false; due_needs := '{}'; due_limits := '{}';
		FOR again IN 0 .. locked LOOP -- again after refunds of expired holds
			spents := array_fill(0::bigint, ARRAY[cardinality(keys)]);
			as_ofs := spents; prevs := spents; dues := spents;
			firsts := array_fill(''::text, ARRAY[cardinality(keys)]);
			dirty := array_fill(false, ARRAY[cardinality(keys)]);
			logs := array_fill(NULL::"formats_schema".sliding_log, ARRAY[cardinality(keys)]);
			others := array_fill(NULL::"formats_schema".accounts, ARRAY[cardinality(keys)]);
			FOR r IN SELECT * FROM "formats_schema".{bucket}_states(keys) LOOP
				k := r.i;
				firsts[k] := r.lim; spents[k] := r.spent; as_ofs[k] := r.as_of; prevs[k] := coalesce(r.prev, 0);
				newest := greatest(newest, r.as_of);
				IF r.log IS NOT NULL THEN logs[k] := ROW(r.log); END IF;
				IF r.others IS NOT NULL THEN
					others[k] := ROW(r.others);
					turning := true;
					due_now := due_now OR "formats_schema".{bucket}_is_due(r.others, clock);
				ELSIF strpos(r.lim, '.') > 0 THEN
					turning := true;
				END IF;
			END LOOP;
			EXIT WHEN locked = 0 OR NOT due_now OR again = 1;
			SELECT d.needs, d.needing FROM "formats_schema".{bucket}_refund_due(keys, clock, shift, calendars, windows) AS d INTO due_needs, due_limits;
		END LOOP;
		answers := due_needs; limits := due_limits; writes := false;
		FOR k IN 1 .. CASE WHEN turning THEN cardinality(keys) ELSE 0 END LOOP -- bring accounts of calendars to the clock
			CONTINUE WHEN firsts[k] = '';
			CONTINUE WHEN others[k] IS NULL AND firsts[k] NOT LIKE '1:%.%';
			list := ARRAY[ROW(firsts[k], spents[k], as_ofs[k], prevs[k], NULL)::"formats_schema".account] || (others[k]).list;
			FOR j IN 1 .. cardinality(list) LOOP
				CONTINUE WHEN list[j].lim LIKE 'held:%';
				newest := greatest(newest, list[j].as_of);
				CONTINUE WHEN strpos(list[j].lim, '.') = 0;
				x := array_position(lims, list[j].lim);
				IF x IS NULL THEN l := "formats_schema".limit_of(list[j].lim, keys[k]); ELSE l := rates[x]; END IF;
				g := "formats_schema".turned(l, list[j], (starts[array_position(calendars, list[j].lim)]).entries, clock);
				IF g IS NULL THEN
					answers := answers || list[j].as_of; limits := limits || list[j].lim;
				ELSIF j = 1 THEN
					logs[k] := ROW(g);
				ELSE
					a := list[j]; a.log := g;
					was := (others[k]).list; was[j - 1] := a;
					others[k] := ROW(was)::"formats_schema".accounts;
				END IF;
			END LOOP;
		END LOOP;
		FOR i IN 1 .. cardinality(calendars) LOOP
			CONTINUE WHEN "formats_schema".window_of((starts[i]).entries, clock) > 0 AND
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
					PERFORM FROM "formats_schema".{bucket}_memory m WHERE m.id = ids[memo] AND clock - m.at < 120000000;
					CONTINUE WHEN FOUND;
					writes := true;
					IF locked = 1 THEN
						INSERT INTO "formats_schema".{bucket}_memory AS m (id, at, until, answer, limits)
							VALUES (ids[memo], clock, clock + shift + 120000000, '{}', '{}')
							ON CONFLICT (id) DO UPDATE SET at = excluded.at, until = excluded.until;
					END IF;
				END IF;
				FOR j IN 0 .. charges - 1 LOOP
					x := first + 6 * j;
					k := program[x]; cost := program[x + 2]; w := program[x + 3];
					CONTINUE WHEN firsts[k] = '';
					PERFORM "formats_schema".slots_check(firsts[k], keys[k], (rates[program[x + 1]]).algorithm = 4);
					IF (rates[program[x + 1]]).algorithm = 4 THEN
						g := "formats_schema".slots_without((logs[k]).entries, program[x + 4], program[x + 5]);
						CONTINUE WHEN g IS NOT DISTINCT FROM (logs[k]).entries;
						logs[k] := ROW(g);
						spents[k] := cardinality(g) / 3 * 1000;
						dues[k] := coalesce(g[cardinality(g) - 2], clock);
						dirty[k] := true; writes := true;
						CONTINUE;
					END IF;
					CONTINUE WHEN cost <= 0;
					was := ARRAY[ROW(firsts[k], spents[k], as_ofs[k], prevs[k], (logs[k]).entries)::"formats_schema".account] || (others[k]).list;
					IF EXISTS (SELECT FROM unnest(was) AS o (lim, spent, as_of, prev, log) WHERE o.lim LIKE 'held:%') THEN
						list := "formats_schema".refunded_accounts(was, keys[k], clock, lims[program[x + 1]], cost, w, program[x + 4], program[x + 5],
							(rates[program[x + 1]]).starts);
					ELSE
						list := '{}';
						FOREACH a IN ARRAY was LOOP
							IF w < 0 THEN
								a := "formats_schema".refunded("formats_schema".limit_of(a.lim, keys[k]), a, clock, cost);
							ELSIF a.lim = lims[program[x + 1]] THEN
								a := "formats_schema".canceled(rates[program[x + 1]], a, clock, cost, w, program[x + 4], program[x + 5]);
							END IF;
							list := list || a;
						END LOOP;
					END IF;
					CONTINUE WHEN list IS NOT DISTINCT FROM was;
					a := list[1];
					spents[k] := a.spent; as_ofs[k] := a.as_of; prevs[k] := a.prev;
					logs[k] := CASE WHEN a.log IS NOT NULL THEN ROW(a.log)::"formats_schema".sliding_log END;
					others[k] := CASE WHEN cardinality(list) > 1 THEN ROW(list[2:])::"formats_schema".accounts END;
					dues[k] := "formats_schema".due(list, keys[k]);
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
				SELECT m.answer, m.limits FROM "formats_schema".{bucket}_memory m
					WHERE m.id = ids[memo] AND clock - m.at < 120000000 INTO r;
				ok := FOUND;
				FOR j IN 0 .. charges - 1 LOOP -- the retry of a take with an ended slot is a new take
					x := first + 5 * j;
					IF ok AND (rates[program[x + 1]]).algorithm = 4 AND program[x + 2] > 0 THEN
						g := "formats_schema".slots_live((logs[program[x]]).entries, clock);
						ok := "formats_schema".slots_without(g, program[x + 3], program[x + 4]) <> g;
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
				IF firsts[k] <> '' AND firsts[k] <> lims[x] THEN PERFORM "formats_schema".slots_check(firsts[k], keys[k], l.algorithm = 4); END IF;
				IF l.algorithm = 4 THEN
					several[j] := false;
					befores[j] := ROW(lims[x], 0, 0, 0, "formats_schema".slots_live((logs[k]).entries, clock));
					CONTINUE;
				END IF;
				several[j] := others[k] IS NOT NULL OR firsts[k] <> lims[x] AND firsts[k] <> '';
				IF several[j] THEN
					list := ARRAY[ROW(firsts[k], spents[k], as_ofs[k], prevs[k], (logs[k]).entries)::"formats_schema".account] || (others[k]).list;
					SELECT o.own, o.fresh FROM "formats_schema".opened(l, lims[x], list, keys[k], clock) AS o INTO r;
					a := r.own;
					opened[j] := r.fresh;
					IF program[first + 5 * j + 3] < 0 AND "formats_schema".has_max_holds(list, keys[k], clock, lims[x]) THEN
						answers := answers || ARRAY[4, clock];
						writes := false;
						EXIT operations;
					END IF;
				ELSE
					a := ROW(lims[x], spents[k], as_ofs[k], prevs[k], (logs[k]).entries);
					IF l.calendar AND firsts[k] = '' THEN a.as_of := l.starts["formats_schema".window_of(l.starts, clock)]; END IF;
				END IF;
				befores[j] := a;
				IF l.algorithm = 3 THEN
					t := "formats_schema".log_newest(a.log);
					SELECT y.gone, y.sum FROM "formats_schema".log_live(l, coalesce(a.log, '{}'), greatest(clock, t)) AS y INTO w, s;
					IF flags >= 2 THEN room := least(room, greatest(l.c - s, 0)); END IF;
				ELSIF l.algorithm = 0 THEN -- the common case: an inlined look
					t := a.as_of; s := a.spent; w := 0;
					IF clock > t THEN
						s := CASE WHEN clock - t > s / l.n THEN 0 ELSE least(s - (clock - t) * l.n, (l.c + l.debt) * l.p) END;
						t := clock;
					END IF;
					IF flags >= 2 THEN room := least(room, greatest(l.c - "formats_schema".ceiling(s, l.p), 0)); END IF;
				ELSE
					SELECT * FROM "formats_schema".look(l, clock, a.spent, a.as_of, a.prev, a.log) INTO s, t, w;
					IF flags >= 2 THEN room := least(room, "formats_schema".remaining(l, clock, s, t, w)); END IF;
				END IF;
				ss[j] := s; ts[j] := t; ws[j] := w;
			END LOOP;
			ok := true;
			FOR j IN 0 .. charges - 1 LOOP
				l := rates[program[first + 5 * j + 1]]; cost := program[first + 5 * j + 2];
				IF l.algorithm = 4 THEN
					costs[j] := cost;
					g := (befores[j]).log;
					held := "formats_schema".slots_without(g, program[first + 5 * j + 3], program[first + 5 * j + 4]) <> g;
					waits[j] := CASE WHEN flags >= 4 THEN CASE WHEN held THEN 0 ELSE -1 END
						WHEN cost = 0 OR held OR cardinality(g) / 3 < l.c / 1000 THEN 0
						ELSE g[cardinality(g) - 3 * (l.c / 1000) + 1] - clock END;
					ok := ok AND waits[j] = 0;
					CONTINUE;
				END IF;
				IF flags >= 2 AND cost > room THEN cost := least(cost, greatest(room - room % 1000, 1000)); END IF;
				costs[j] := cost;
				IF l.algorithm = 3 THEN
					waits[j] := "formats_schema".log_wait(l, (befores[j]).log, ws[j]::int, ss[j], clock, cost, wait);
					ok := ok AND waits[j] = 0;
				ELSIF l.algorithm = 0 AND wait = -1 AND NOT l.queued THEN
					ok := ok AND cost <= l.c AND ss[j] <= (l.c - cost) * l.p;
				ELSE
					ok := ok AND "formats_schema".admits(l, clock, ss[j], ts[j], ws[j], cost, wait);
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
				ELSE own := "formats_schema".admits(l, clock, ss[j], ts[j], ws[j], cost, wait);
				END IF;
				penalty := "formats_schema".{bucket}_penalty(keys[k], clock);
				IF clock >= penalty[1] AND NOT own AND wait = -1 AND flags % 2 = 0 AND cost > 0
					AND cost <= l.c + (CASE WHEN l.queued THEN l.debt ELSE 0 END) THEN
					writes := true;
					penalty := "formats_schema".{bucket}_punish(keys[k], penalty, clock, shift, program[x], program[x + 1], program[x + 2], locked = 1);
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
						g := "formats_schema".slots_without(g, program[first + 5 * j + 3], program[first + 5 * j + 4]);
						g := "formats_schema".slots_with(g, clock + l.p, program[first + 5 * j + 3], program[first + 5 * j + 4]);
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
						SELECT * FROM "formats_schema".log_spent(l, coalesce(a.log, '{}'), ws[j]::int, greatest(clock, ts[j]), cost) INTO g, sum, t;
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
					list := ARRAY[ROW(firsts[k], spents[k], as_ofs[k], prevs[k], (logs[k]).entries)::"formats_schema".account] || (others[k]).list;
					list := "formats_schema".written(a, list, keys[k], clock, cost, ss[j], wait);
					others[k] := CASE WHEN cardinality(list) > 1 THEN ROW(list[2:])::"formats_schema".accounts END;
					dues[k] := "formats_schema".due(list, keys[k]);
				ELSIF l.algorithm = 0 THEN dues[k] := "formats_schema".full_after(a.as_of, a.spent, l.n);
				ELSE dues[k] := "formats_schema".full_at(l, a.spent, a.as_of, a.prev);
				END IF;
				firsts[k] := a.lim; spents[k] := a.spent; as_ofs[k] := a.as_of; prevs[k] := a.prev;
				logs[k] := CASE WHEN a.log IS NOT NULL THEN ROW(a.log)::"formats_schema".sliding_log END;
				dirty[k] := true; writes := true;
				-- A hold, or a take that awaits its cancellation: see bucket.Row.WithAwait.
				IF cost > 0 AND (ttl > 0 OR ttl < 0 AND l.algorithm = 0) THEN
					list := ARRAY[ROW(a.lim, a.spent, a.as_of, a.prev, a.log)::"formats_schema".account] || (others[k]).list;
					was := ARRAY["formats_schema".history(list, a.lim)];
					CONTINUE WHEN ttl < 0 AND was[1].lim IS NULL AND a.spent <= cost * l.p;
					list := "formats_schema".changed_history(list, keys[k], clock, a.lim, CASE WHEN ttl > 0 THEN 1 ELSE 4 END, a.as_of, a.spent,
						CASE WHEN ttl > 0 THEN clock + ttl ELSE -ttl END, program[first + 5 * j + 4] = 1, pg_current_xact_id()::text::bigint);
					others[k] := ROW(list[2:])::"formats_schema".accounts;
					dues[k] := "formats_schema".due(list, keys[k]);
					IF ttl > 0 THEN
						a := "formats_schema".history(list, a.lim);
						answer[cardinality(answer)] := a.log[1];
					END IF;
				END IF;
			END LOOP;
			answers := answers || answer || punished;
			IF memo > 0 AND ok AND locked = 1 THEN
				answer[1] := 2;
				called := '{}';
				FOR j IN 0 .. charges - 1 LOOP called := called || lims[program[first + 5 * j + 1]]; END LOOP;
				INSERT INTO "formats_schema".{bucket}_memory AS m (id, at, until, answer, limits)
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
			IF was IS NOT NULL THEN others[k] := ROW(was)::"formats_schema".accounts; END IF;
		END LOOP;
	END IF;
	IF writes THEN
		INSERT INTO "formats_schema".{bucket} AS b (key, lim, spent, as_of, full_at, prev, log, others)
			SELECT d.key, d.lim, d.spent, d.as_of, d.due + shift, nullif(d.prev, 0), d.log, d.others
			FROM unnest(keys, firsts, spents, as_ofs, prevs, dues, logs, others, dirty) AS d (key, lim, spent, as_of, prev, due, log, others, dirty)
			WHERE d.dirty
			ON CONFLICT (key) DO UPDATE SET lim = excluded.lim, spent = excluded.spent, as_of = excluded.as_of,
				full_at = excluded.full_at, prev = excluded.prev, log = excluded.log, others = excluded.others;
	END IF;
	SELECT array_agg(d.key) FROM unnest(keys, dirty) AS d (key, dirty) WHERE NOT d.dirty AND d.key = ANY (fresh) INTO fresh;
	IF fresh IS NOT NULL THEN
		PERFORM "formats_schema".{bucket}_delete_rows(fresh); -- denied takes leave no rows
	END IF;
END $$;

-- sweep deletes the rows of buckets that have been full for a second, and expired memory rows: up to most rows of
-- each. It reads this many pages of each table, starting at a part between 0 and 1. It skips locked rows, and
-- returns swept = -1 while another sweep runs. The result share is the fraction of the table that was read.
--
-- The second is for takes that have read the clock and are about to insert a row: they must find the takes of
-- others.
CREATE FUNCTION "formats_schema".{bucket}_sweep(part float8, pages bigint, most int, OUT swept bigint, OUT share float8)
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET enable_indexscan = off SET jit = off AS $$
DECLARE
	clock CONSTANT bigint := "formats_schema".microseconds();
	size CONSTANT bigint := pg_relation_size('"formats_schema".{bucket}') / current_setting('block_size')::bigint + 1;
	memory CONSTANT bigint := pg_relation_size('"formats_schema".{bucket}_memory') / current_setting('block_size')::bigint + 1;
	page bigint := floor(part * size);
	gone bigint;
BEGIN
	swept := -1;
	share := least(pages::float8 / size, 1);
	IF NOT pg_try_advisory_xact_lock(x'6d657465'::bigint << 31 | '"formats_schema".{bucket}'::regclass::oid::bigint) THEN RETURN; END IF;
	DELETE FROM "formats_schema".{bucket} WHERE ctid = ANY (ARRAY(
		SELECT b.ctid FROM "formats_schema".{bucket} b
			WHERE b.ctid >= format('(%s,0)', page)::tid AND b.ctid < format('(%s,0)', page + pages)::tid AND b.full_at < clock - 1000000
			LIMIT most FOR UPDATE SKIP LOCKED));
	GET DIAGNOSTICS swept = ROW_COUNT;
	page := floor(part * memory);
	DELETE FROM "formats_schema".{bucket}_memory WHERE ctid = ANY (ARRAY(
		SELECT m.ctid FROM "formats_schema".{bucket}_memory m
			WHERE m.ctid >= format('(%s,0)', page)::tid AND m.ctid <= format('(%s,0)', page + ceil(share * memory)::bigint)::tid
				AND m.until < clock
			LIMIT most FOR UPDATE SKIP LOCKED));
	GET DIAGNOSTICS gone = ROW_COUNT;
	swept := swept + gone;
END $$;

-- {bucket}_view shows the accounts of the buckets to operators. It escapes bytes of keys that are not text.
CREATE VIEW "formats_schema".{bucket}_view AS
	SELECT encode(b.key, 'escape') AS key, CASE (l.l).algorithm WHEN 2 THEN 'sliding window' WHEN 3 THEN 'sliding log' WHEN 4 THEN 'slots' WHEN 0 THEN 'bucket' WHEN 1 THEN 'bucket'
			ELSE CASE WHEN a.lim LIKE 'penalty %' THEN 'penalty' ELSE 'unknown' END END AS kind,
		round(a.spent::numeric / CASE (l.l).algorithm WHEN 0 THEN (l.l).p ELSE 1 END / 1000, 6) AS missing,
		to_timestamp(a.as_of / 1e6) AS as_of, to_timestamp(b.full_at / 1e6) AS full_at,
		round((l.l).c::numeric / 1000, 3) AS capacity, a.number
	FROM "formats_schema".{bucket} b
	CROSS JOIN LATERAL (SELECT 1 AS number, b.lim, b.spent, b.as_of
		UNION ALL SELECT 1 + o.number::int, o.lim, o.spent, o.as_of
		FROM unnest(b.others) WITH ORDINALITY AS o (lim, spent, as_of, prev, log, number) WHERE o.lim NOT LIKE 'held:%') AS a
	CROSS JOIN LATERAL (SELECT CASE WHEN a.lim LIKE '1:%' THEN "formats_schema".viewed_limit(a.lim, b.key) END AS l) AS l;
$each$, '{bucket}', name), '{unlogged}', CASE name WHEN 'bucket' THEN 'UNLOGGED' ELSE '' END);
END LOOP;
END $both$;
$migration$;
		INSERT INTO "formats_schema".migration (version, name) VALUES (1, 'bucket');
	END IF;
END
$mete$;

DO $mete$
BEGIN
	IF NOT EXISTS (SELECT FROM "formats_schema".migration WHERE version = 2) THEN
		EXECUTE $migration$
-- SPDX-License-Identifier: Apache-2.0
--
-- A row of rate_limit_rule is one rule, and a row of rate_limit_policy has the other fields of a policy. Both
-- have documents in the policy language in the column spec. Package rules compiles them into a policy.

-- Maps the words in a key_pattern, and the column plan, to attributes. The words method, path and host map to
-- themselves.
CREATE TABLE "formats_schema".rate_limit_attribute (
    name      text COLLATE "C" PRIMARY KEY,
    attribute text COLLATE "C" NOT NULL,
    CONSTRAINT rate_limit_attribute_name_check
        CHECK (name ~ '^[a-z][a-z0-9_-]{0,31}$' AND name NOT IN ('method', 'path', 'host', 'global', 'custom')),
    CONSTRAINT rate_limit_attribute_attribute_check
        CHECK (octet_length(attribute) BETWEEN 1 AND 128)
);

INSERT INTO "formats_schema".rate_limit_attribute (name, attribute) VALUES
    ('ip',       'ip:address'),
    ('endpoint', 'path'),
    ('user',     'jwt:sub'),
    ('user_id',  'jwt:sub'),
    ('plan',     'jwt:plan'),
    ('tenant',   'jwt:tenant'),
    ('api_key',  'header:x-api-key');

CREATE TABLE "formats_schema".rate_limit_policy (
    policy text COLLATE "C" PRIMARY KEY,
    spec   jsonb NOT NULL DEFAULT '{}',

    CONSTRAINT rate_limit_policy_policy_check
        CHECK (policy = '' OR policy ~ '^[!-~]([ -~]{0,62}[!-~])?$'),
    CONSTRAINT rate_limit_policy_spec_check
        CHECK (jsonb_typeof(spec) = 'object' AND NOT spec ?| ARRAY['rules', 'fallback_limit', 'policies', 'bundle_version', 'issued_at', 'expires_at'])
);

CREATE TABLE "formats_schema".rate_limit_rule (
    rule_id         bigint       GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    name            text COLLATE "C" NOT NULL,
    key_pattern     text COLLATE "C" NOT NULL,
    scope           text         NOT NULL,
    rate_per_second numeric,
    burst_capacity  numeric,
    plan            text COLLATE "C",
    is_active       boolean      NOT NULL DEFAULT true,
    description     text,
    priority        integer      NOT NULL DEFAULT 0,
    policy          text COLLATE "C" NOT NULL DEFAULT 'rules',
    is_fallback     boolean      NOT NULL DEFAULT false,
    spec            jsonb        NOT NULL DEFAULT '{}',
    window_tokens   numeric      GENERATED ALWAYS AS (CASE
        WHEN jsonb_typeof(spec #> '{algorithm_config,tokens}') = 'number' THEN (spec #>> '{algorithm_config,tokens}')::numeric
        WHEN jsonb_typeof(spec #> '{algorithm_config,budget}') = 'number' THEN (spec #>> '{algorithm_config,budget}')::numeric END) STORED,
    window_length   text         GENERATED ALWAYS AS
        (coalesce(spec #>> '{algorithm_config,window}', spec #>> '{algorithm_config,period}')) STORED,
    version         bigint       NOT NULL DEFAULT 1,
    created_at      timestamptz  NOT NULL DEFAULT now(),
    updated_at      timestamptz  NOT NULL DEFAULT now(),

    CONSTRAINT rate_limit_rule_name_key UNIQUE (name),
    CONSTRAINT rate_limit_rule_name_check
        CHECK (name ~ '^[!-~]([ -~]{0,62}[!-~])?$'),
    CONSTRAINT rate_limit_rule_key_pattern_check
        CHECK (length(key_pattern) <= 128 AND key_pattern ~ ('^(global|custom|'
            || '(([a-z][a-z0-9_-]{0,31}:)?[{][^{}]+[}]|[a-z][a-z0-9_-]{0,31}:[^:{}[:space:]]+)'
            || '(:(([a-z][a-z0-9_-]{0,31}:)?[{][^{}]+[}]|[a-z][a-z0-9_-]{0,31}:[^:{}[:space:]]+))*)$')),
    CONSTRAINT rate_limit_rule_scope_check
        CHECK (CASE scope
            WHEN 'global' THEN key_pattern = 'global'
            WHEN 'custom' THEN key_pattern <> 'global'
            WHEN 'user' THEN ':' || key_pattern LIKE '%:user:%'
            WHEN 'endpoint' THEN ':' || key_pattern LIKE '%:endpoint:%'
            WHEN 'ip' THEN ':' || key_pattern LIKE '%:ip:%'
            ELSE false END),
    -- NaN compares greater than all numbers, including infinity.
    CONSTRAINT rate_limit_rule_rate_per_second_check
        CHECK (rate_per_second > 0 AND rate_per_second <= 9007199254740.991),
    CONSTRAINT rate_limit_rule_burst_capacity_check
        CHECK (burst_capacity >= 1 AND burst_capacity <= 9007199254740.991 AND burst_capacity = round(burst_capacity, 3)),
    CONSTRAINT rate_limit_rule_plan_check
        CHECK (length(plan) <= 32 AND plan ~ '^[^*]+$' AND plan = btrim(plan)),
    CONSTRAINT rate_limit_rule_description_check
        CHECK (octet_length(description) <= 1024),
    CONSTRAINT rate_limit_rule_policy_check
        CHECK (policy ~ '^[!-~]([ -~]{0,62}[!-~])?$'),
    CONSTRAINT rate_limit_rule_spec_check
        CHECK (jsonb_typeof(spec) = 'object' AND octet_length(spec::text) <= 1048576),
    CONSTRAINT rate_limit_rule_limit_check
        CHECK (spec ?| ARRAY['algorithm_config', 'limits']
            AND (rate_per_second IS NULL OR spec -> 'algorithm_config' ? 'burst')
            AND (burst_capacity IS NULL OR spec -> 'algorithm_config' ?| ARRAY['rps', 'tokens_per_second', 'rate'])),
    CONSTRAINT rate_limit_rule_keys_check
        CHECK (is_fallback OR spec ? 'limit_keys')
);

-- Two active rules with the same keys and match would both apply, so raising one limit would have no effect. Rows
-- can share both if group, mode or on_missing differ.
CREATE UNIQUE INDEX rate_limit_rule_key_pattern_plan_key
    ON "formats_schema".rate_limit_rule (policy, md5((spec -> 'limit_keys')::text || coalesce(spec -> 'match', '{}')::text))
    WHERE is_active AND NOT is_fallback AND NOT spec ?| ARRAY['group', 'mode', 'on_missing'];
CREATE UNIQUE INDEX rate_limit_rule_fallback_key
    ON "formats_schema".rate_limit_rule (policy) WHERE is_active AND is_fallback;

COMMENT ON TABLE "formats_schema".rate_limit_rule IS 'Rules of mete. All servers apply active rules within a second.';
COMMENT ON COLUMN "formats_schema".rate_limit_rule.spec IS 'The rule in the policy language. Changes of other columns update spec, and the reverse.';
COMMENT ON COLUMN "formats_schema".rate_limit_rule.name IS 'A part of bucket keys: a renamed rule starts with full buckets.';
COMMENT ON COLUMN "formats_schema".rate_limit_rule.key_pattern IS 'The attributes and values that identify a bucket: user:{user_id}, endpoint:/api/search, global.';
COMMENT ON COLUMN "formats_schema".rate_limit_rule.plan IS 'The rule applies only to requests of this plan; NULL matches all plans.';
COMMENT ON COLUMN "formats_schema".rate_limit_rule.priority IS 'In a group, the row with the lowest priority applies first, then the lowest rule_id.';
COMMENT ON COLUMN "formats_schema".rate_limit_rule.is_fallback IS 'The rule applies if no other rule of its policy does.';
COMMENT ON TABLE "formats_schema".rate_limit_policy IS 'Policy fields other than rules. The row with the empty name applies to all policies.';

-- The revision increases with each statement that changes rules. Its row also serializes writers.
CREATE TABLE "formats_schema".rate_limit_revision (
    only_row   boolean     PRIMARY KEY DEFAULT true CHECK (only_row),
    revision   bigint      NOT NULL,
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

INSERT INTO "formats_schema".rate_limit_revision (revision) VALUES (1);

-- rate_limit_pattern_parts returns the parts of a key_pattern: the word of a placeholder, or a label and its
-- value.
CREATE FUNCTION "formats_schema".rate_limit_pattern_parts(key_pattern text) RETURNS SETOF text[] LANGUAGE sql IMMUTABLE
    SET search_path = pg_catalog, pg_temp AS $function$
    SELECT regexp_matches(key_pattern,
        '(?:^|:)(?:(?:[a-z][a-z0-9_-]{0,31}:)?[{]([^{}]+)[}]|([a-z][a-z0-9_-]{0,31}):([^:{}[:space:]]+))', 'g')
$function$;

-- rate_limit_pattern returns the limit_keys and the match of a key_pattern, and NULL for custom. It parses the
-- valid parts of an invalid pattern, which a constraint rejects. A word that is not in rate_limit_attribute is an
-- error if strict is set, and otherwise maps to itself.
CREATE FUNCTION "formats_schema".rate_limit_pattern(key_pattern text, strict boolean) RETURNS jsonb LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $function$
DECLARE
    part  text[];
    word  text;
    known text;
    keys  jsonb := '[]';
    match jsonb := '{}';
BEGIN
    IF key_pattern = 'custom' THEN
        RETURN NULL;
    END IF;
    FOR part IN SELECT * FROM "formats_schema".rate_limit_pattern_parts(key_pattern) LOOP
        word := coalesce(part[1], part[2]);
        known := (SELECT a.attribute FROM "formats_schema".rate_limit_attribute a WHERE a.name = word);
        IF known IS NULL AND word LIKE 'attribute:_%' THEN
            known := substr(word, 11);
        ELSIF known IS NULL AND (NOT strict OR word ~ '^(header|query|cookie|jwt|ip):' OR word IN ('method', 'path', 'host')) THEN
            known := word;
        ELSIF known IS NULL THEN
            RAISE check_violation USING MESSAGE = format('"%s" is not a known attribute', word),
                DETAIL = (SELECT string_agg(a.name, ', ' ORDER BY a.name) FROM "formats_schema".rate_limit_attribute a) || ', method, path, host',
                HINT = format('insert it into rate_limit_attribute, or use an attribute such as {header:x-user} or {attribute:%s}', word),
                COLUMN = 'key_pattern';
        END IF;
        IF part[1] IS NOT NULL THEN
            keys := keys || jsonb_build_array(known);
        ELSE
            match := match || jsonb_build_object(known, part[3]);
        END IF;
    END LOOP;
    RETURN jsonb_build_object('limit_keys', keys, 'match', match);
END
$function$;

-- rate_limit_pattern_of returns a key_pattern for the limit_keys and the path of a rule, or custom if no pattern
-- can express them.
CREATE FUNCTION "formats_schema".rate_limit_pattern_of(spec jsonb) RETURNS text LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $function$
DECLARE
    path    text := CASE WHEN jsonb_typeof(spec #> '{match,path}') = 'string' THEN spec #>> '{match,path}' END;
    pattern text;
BEGIN
    pattern := (SELECT string_agg(coalesce(
            (SELECT min(a.name) || ':{' || max(a.name) || '}' FROM "formats_schema".rate_limit_attribute a WHERE a.attribute = key),
            CASE WHEN key ~ '^(header|query|cookie|jwt|ip):' OR key IN ('method', 'path', 'host') THEN '{' || key || '}' ELSE '{attribute:' || key || '}' END), ':' ORDER BY n)
        FROM jsonb_array_elements_text(spec -> 'limit_keys') WITH ORDINALITY AS keys (key, n));
    IF path ~ '^[^:{}[:space:]]+$' THEN
        pattern := concat_ws(':', coalesce((SELECT min(a.name) FROM "formats_schema".rate_limit_attribute a WHERE a.attribute = 'path'), 'path'), path, pattern);
    END IF;
    pattern := coalesce(pattern, 'global');
    IF length(pattern) > 128 OR "formats_schema".rate_limit_pattern(pattern, false) -> 'limit_keys' IS DISTINCT FROM coalesce(spec -> 'limit_keys', '[]') THEN
        RETURN 'custom';
    END IF;
    RETURN pattern;
END
$function$;

-- rate_limit_rule_row copies changed columns to spec, and then sets all columns from spec.
CREATE FUNCTION "formats_schema".rate_limit_rule_row() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $function$
DECLARE
    was       "formats_schema".rate_limit_rule; -- all NULL for an INSERT
    doc       jsonb := coalesce(NEW.spec, '{}');
    match     jsonb;
    config    jsonb;
    said      jsonb;
    value     text;
    plan_attr text := (SELECT a.attribute FROM "formats_schema".rate_limit_attribute a WHERE a.name = 'plan');
BEGIN
    IF TG_OP = 'UPDATE' THEN
        was := OLD;
    END IF;
    IF jsonb_typeof(doc) <> 'object' OR jsonb_typeof(coalesce(doc -> 'match', '{}')) NOT IN ('object', 'array')
        OR jsonb_typeof(coalesce(doc -> 'algorithm_config', '{}')) <> 'object' OR jsonb_typeof(coalesce(doc -> 'limit_keys', '[]')) <> 'array' THEN
        RAISE check_violation USING CONSTRAINT = 'rate_limit_rule_spec_check', COLUMN = 'spec',
            MESSAGE = 'spec and algorithm_config must be JSON objects, match an object or a list, and limit_keys a list';
    END IF;
    match := coalesce(doc -> 'match', '{}');
    config := coalesce(doc -> 'algorithm_config', '{}');
    -- A list of alternatives has no place for the clauses of other columns.
    IF jsonb_typeof(match) = 'array' AND (NEW.plan IS NOT NULL AND NEW.plan IS DISTINCT FROM was.plan
        OR NEW.key_pattern IS DISTINCT FROM was.key_pattern AND "formats_schema".rate_limit_pattern(NEW.key_pattern, false) -> 'match' <> '{}') THEN
        RAISE check_violation USING CONSTRAINT = 'rate_limit_rule_match_check', COLUMN = 'spec',
            MESSAGE = 'match is a list of alternatives, so plan and the values in key_pattern have no place in it', HINT = 'write them into each alternative';
    END IF;

    -- 1. Copy the columns that the statement sets to spec. If spec already has the value, keep its text, so that
    -- a row can be inserted back unchanged.
    IF NEW.name IS DISTINCT FROM was.name AND NEW.name IS DISTINCT FROM doc ->> 'name' THEN
        doc := (doc - 'name') || jsonb_strip_nulls(jsonb_build_object('name', NEW.name));
    END IF;
    IF NEW.description IS DISTINCT FROM was.description AND NEW.description IS DISTINCT FROM doc ->> 'description' THEN
        doc := (doc - 'description') || jsonb_strip_nulls(jsonb_build_object('description', NEW.description));
    END IF;
    IF NEW.rate_per_second IS DISTINCT FROM was.rate_per_second
        AND to_jsonb(NEW.rate_per_second) IS DISTINCT FROM coalesce(config -> 'tokens_per_second', config -> 'rps') THEN
        config := (config - ARRAY['rps', 'tokens_per_second', 'rate']) || jsonb_strip_nulls(jsonb_build_object('rps', NEW.rate_per_second));
    END IF;
    IF NEW.burst_capacity IS DISTINCT FROM was.burst_capacity
        AND to_jsonb(NEW.burst_capacity) IS DISTINCT FROM config -> 'burst' THEN
        config := (config - 'burst') || jsonb_strip_nulls(jsonb_build_object('burst', NEW.burst_capacity));
    END IF;
    IF (NEW.rate_per_second, NEW.burst_capacity) IS DISTINCT FROM (was.rate_per_second, was.burst_capacity)
        AND coalesce(NEW.rate_per_second, NEW.burst_capacity) IS NOT NULL AND (doc ? 'limits' OR doc ->> 'algorithm' <> 'token_bucket') THEN
        RAISE check_violation USING CONSTRAINT = 'rate_limit_rule_limit_check', COLUMN = 'spec',
            MESSAGE = 'rate_per_second and burst_capacity require a token_bucket, but spec has a different limit';
    END IF;
    IF NEW.key_pattern IS DISTINCT FROM was.key_pattern THEN
        said := "formats_schema".rate_limit_pattern(NEW.key_pattern, true);
        IF said IS NOT NULL THEN
            IF jsonb_typeof(match) = 'object' THEN
                FOR value IN SELECT jsonb_object_keys("formats_schema".rate_limit_pattern(was.key_pattern, false) -> 'match') LOOP
                    match := match - value;
                END LOOP;
                match := match || (said -> 'match');
            END IF;
            -- A fallback without limit_keys stays without.
            IF NOT (NEW.is_fallback AND said -> 'limit_keys' = '[]' AND NOT doc ? 'limit_keys') THEN
                doc := doc || jsonb_build_object('limit_keys', said -> 'limit_keys');
            END IF;
        END IF;
    END IF;
    IF NEW.plan IS DISTINCT FROM was.plan AND jsonb_typeof(match) = 'object' THEN
        IF plan_attr IS NULL THEN
            RAISE check_violation USING CONSTRAINT = 'rate_limit_rule_plan_check', COLUMN = 'plan', MESSAGE = 'plan is not mapped to an attribute',
                HINT = 'add plan to rate_limit_attribute';
        END IF;
        match := (match - plan_attr) || jsonb_strip_nulls(jsonb_build_object(plan_attr, NEW.plan));
    END IF;
    doc := (doc - 'match' - 'algorithm_config')
        || CASE WHEN match = '{}' THEN '{}' ELSE jsonb_build_object('match', match) END
        || CASE WHEN config = '{}' THEN '{}' ELSE jsonb_build_object('algorithm_config', config) END;
    IF TG_OP = 'INSERT' AND NOT (doc @> (NEW.spec - ARRAY['limit_keys', 'match', 'algorithm_config'])
        AND coalesce(NEW.spec -> 'limit_keys' = doc -> 'limit_keys', true)
        AND match @> coalesce(NEW.spec -> 'match', '{}') AND config @> coalesce(NEW.spec -> 'algorithm_config', '{}')
        AND (jsonb_typeof(match) = 'array' OR match @> coalesce("formats_schema".rate_limit_pattern(NEW.key_pattern, false) -> 'match', '{}'))) THEN
        RAISE check_violation USING CONSTRAINT = 'rate_limit_rule_twice_check', COLUMN = 'spec',
            MESSAGE = 'spec and another column have different values for one field', HINT = 'set it in one place';
    END IF;

    -- 2. Set the columns from spec, except the columns that the statement sets.
    IF NEW.name IS NOT DISTINCT FROM was.name THEN
        NEW.name := doc ->> 'name';
    END IF;
    IF NEW.description IS NOT DISTINCT FROM was.description THEN
        NEW.description := doc ->> 'description';
    END IF;
    IF NEW.rate_per_second IS NOT DISTINCT FROM was.rate_per_second THEN
        NEW.rate_per_second := NULL;
        said := coalesce(config -> 'tokens_per_second', config -> 'rps');
        IF jsonb_typeof(said) = 'number' AND coalesce(doc ->> 'algorithm', 'token_bucket') = 'token_bucket' AND NOT doc ? 'limits'
            AND config ? 'burst' AND said > '0' AND said <= '9007199254740.991' THEN
            NEW.rate_per_second := said::numeric;
        END IF;
    END IF;
    IF NEW.burst_capacity IS NOT DISTINCT FROM was.burst_capacity THEN
        NEW.burst_capacity := NULL;
        said := config -> 'burst';
        IF jsonb_typeof(said) = 'number' AND coalesce(doc ->> 'algorithm', 'token_bucket') = 'token_bucket' AND NOT doc ? 'limits'
            AND config ?| ARRAY['rps', 'tokens_per_second', 'rate']
            AND said >= '1' AND said <= '9007199254740.991' AND said::numeric = round(said::numeric, 3) THEN
            NEW.burst_capacity := said::numeric;
        END IF;
    END IF;
    IF NEW.plan IS NOT DISTINCT FROM was.plan THEN
        value := match ->> plan_attr;
        NEW.plan := CASE WHEN jsonb_typeof(match -> plan_attr) = 'string' AND length(value) BETWEEN 1 AND 32
            AND value ~ '^[^*]+$' AND value = btrim(value) THEN value END;
    END IF;
    -- Keep the text of a pattern that agrees with spec.
    IF NEW.key_pattern IS NULL OR NEW.key_pattern IS NOT DISTINCT FROM was.key_pattern THEN
        said := "formats_schema".rate_limit_pattern(NEW.key_pattern, false);
        IF NEW.key_pattern IS NULL OR said IS NULL OR said -> 'limit_keys' <> coalesce(doc -> 'limit_keys', '[]') OR said -> 'match' <> '{}' AND NOT match @> (said -> 'match') THEN
            NEW.key_pattern := "formats_schema".rate_limit_pattern_of(doc);
        END IF;
    END IF;
    IF NEW.scope IS NULL OR NEW.scope IS NOT DISTINCT FROM was.scope AND NEW.key_pattern <> was.key_pattern THEN
        NEW.scope := CASE
            WHEN NEW.key_pattern = 'global' THEN 'global'
            WHEN NEW.key_pattern ~ '^(user|endpoint|ip):([{][^{}]*[}]|[^:{}]*)$' THEN split_part(NEW.key_pattern, ':', 1)
            ELSE 'custom' END;
    END IF;
    IF NEW.name IS NULL THEN
        -- The default name of user:{user_id} with the plan free is user-free.
        value := regexp_replace(NEW.key_pattern, '(^|:)([a-z0-9_-]+):[{]\2[^}]*[}]', '\1\2', 'g');
        value := regexp_replace(regexp_replace(value, '[{}]', '', 'g') || coalesce('-' || NEW.plan, ''), '[^!-~]', '_', 'g');
        IF length(value) > 64 THEN
            value := left(value, 55) || '~' || left(md5(NEW.key_pattern || coalesce(' ' || NEW.plan, '')), 8);
        END IF;
        NEW.name := value;
        doc := doc || jsonb_build_object('name', value);
    END IF;
    NEW.spec := doc;
    IF TG_OP = 'UPDATE' AND (NEW.spec, NEW.key_pattern, NEW.scope, NEW.is_active, NEW.priority, NEW.policy, NEW.is_fallback)
        IS DISTINCT FROM (was.spec, was.key_pattern, was.scope, was.is_active, was.priority, was.policy, was.is_fallback) THEN
        NEW.version := was.version + 1;
        NEW.updated_at := clock_timestamp();
    END IF;
    RETURN NEW;
END
$function$;

CREATE TRIGGER rate_limit_rule_row BEFORE INSERT OR UPDATE ON "formats_schema".rate_limit_rule
    FOR EACH ROW EXECUTE FUNCTION "formats_schema".rate_limit_rule_row();

-- rate_limit_attribute_row updates the rules with a changed word in their key_pattern or plan.
CREATE FUNCTION "formats_schema".rate_limit_attribute_row() RETURNS trigger LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $function$
BEGIN
    -- An INSERT that has read the old attribute ends before this lock is granted.
    LOCK TABLE "formats_schema".rate_limit_rule IN SHARE ROW EXCLUSIVE MODE;
    -- A single UPDATE changes limit_keys and match. If only one of them changed, the trigger of the rules would
    -- create a different pattern.
    UPDATE "formats_schema".rate_limit_rule r SET spec = r.spec
        || CASE WHEN u.in_keys THEN jsonb_build_object('limit_keys',
            (SELECT coalesce(jsonb_agg(CASE key WHEN to_jsonb(OLD.attribute) THEN to_jsonb(NEW.attribute) ELSE key END ORDER BY n), '[]')
                FROM jsonb_array_elements(r.spec -> 'limit_keys') WITH ORDINALITY AS keys (key, n))) ELSE '{}' END
        || CASE WHEN u.in_match THEN jsonb_build_object('match',
            (r.spec -> 'match') - OLD.attribute || jsonb_build_object(NEW.attribute, r.spec -> 'match' -> OLD.attribute)) ELSE '{}' END
        FROM (SELECT o.rule_id,
                o.spec -> 'limit_keys' ? OLD.attribute
                    AND EXISTS (SELECT FROM "formats_schema".rate_limit_pattern_parts(o.key_pattern) AS part WHERE part[1] = OLD.name) AS in_keys,
                jsonb_typeof(o.spec -> 'match' -> OLD.attribute) = 'string' AND (OLD.name = 'plan'
                    OR EXISTS (SELECT FROM "formats_schema".rate_limit_pattern_parts(o.key_pattern) AS part WHERE part[2] = OLD.name)) AS in_match
            FROM "formats_schema".rate_limit_rule o) AS u
        WHERE u.rule_id = r.rule_id AND (u.in_keys OR u.in_match);
    RETURN NULL;
END
$function$;

CREATE TRIGGER rate_limit_attribute_row AFTER UPDATE ON "formats_schema".rate_limit_attribute
    FOR EACH ROW WHEN (OLD.attribute <> NEW.attribute) EXECUTE FUNCTION "formats_schema".rate_limit_attribute_row();

-- Users with write access to rules need no privileges for the revision.
CREATE FUNCTION "formats_schema".rate_limit_changed() RETURNS trigger LANGUAGE plpgsql
    SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $function$
DECLARE
    now_at bigint;
BEGIN
    INSERT INTO "formats_schema".rate_limit_revision AS r (revision) VALUES (1)
        ON CONFLICT (only_row) DO UPDATE SET revision = r.revision + 1, changed_at = clock_timestamp()
        RETURNING revision INTO now_at;
    PERFORM pg_notify(TG_TABLE_SCHEMA, 'rules ' || now_at);
    RETURN NULL;
END
$function$;

-- Triggers need no privilege for their function. A user who could attach it to another table could make all
-- servers read all rules at any rate.
REVOKE EXECUTE ON FUNCTION "formats_schema".rate_limit_changed() FROM PUBLIC;

CREATE TRIGGER rate_limit_rule_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON "formats_schema".rate_limit_rule
    FOR EACH STATEMENT EXECUTE FUNCTION "formats_schema".rate_limit_changed();
CREATE TRIGGER rate_limit_policy_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON "formats_schema".rate_limit_policy
    FOR EACH STATEMENT EXECUTE FUNCTION "formats_schema".rate_limit_changed();
$migration$;
		INSERT INTO "formats_schema".migration (version, name) VALUES (2, 'rule');
	END IF;
END
$mete$;

DO $mete$
BEGIN
	IF NOT EXISTS (SELECT FROM "formats_schema".migration WHERE version = 3) THEN
		EXECUTE $migration$
-- SPDX-License-Identifier: Apache-2.0

-- Denied requests that package violations records. A row counts one or more requests in denials.
--
-- rule_name identifies a rule, independent of the source of the policy. rule_id is the rate_limit_rule with this
-- name at the time of the write, if any. It is not a foreign key, so that denials of deleted rules stay known.
CREATE TABLE "formats_schema".rate_limit_violation (
    violation_id   bigint           GENERATED BY DEFAULT AS IDENTITY,
    bucket_key     varchar(256)     NOT NULL, -- a keyed hash by default
    user_id        varchar(255), -- a keyed hash by default
    ip_address     inet, -- truncated to /24 or /48 by default
    endpoint       varchar(255),              -- method and path, without query
    requested_at   timestamptz      NOT NULL DEFAULT clock_timestamp(), -- of the first denial
    tokens_at_time double precision, -- null if there was no bucket
    rule_id        bigint,
    rule_name      varchar(64)      NOT NULL,
    limit_name     varchar(128)     NOT NULL DEFAULT '',
    reason         varchar(64)      NOT NULL DEFAULT '',
    cost           double precision NOT NULL DEFAULT 1, -- sum over all denials
    retry_after    interval, -- of the first denial; null for never
    denials        bigint           NOT NULL DEFAULT 1 CHECK (denials > 0),
    last_at        timestamptz      NOT NULL DEFAULT clock_timestamp(), -- of the last denial
    shadow         boolean          NOT NULL DEFAULT false, -- a shadow rule would have denied it
    node           varchar(64)      NOT NULL DEFAULT '',
    PRIMARY KEY (requested_at, violation_id)
) PARTITION BY RANGE (requested_at);

CREATE INDEX rate_limit_violation_user ON "formats_schema".rate_limit_violation (user_id, requested_at DESC) WHERE user_id IS NOT NULL;
CREATE INDEX rate_limit_violation_ip ON "formats_schema".rate_limit_violation (ip_address, requested_at DESC) WHERE ip_address IS NOT NULL;
CREATE INDEX rate_limit_violation_key ON "formats_schema".rate_limit_violation (bucket_key, requested_at DESC);
CREATE INDEX rate_limit_violation_rule ON "formats_schema".rate_limit_violation (rule_name, requested_at DESC);

-- Rows without a partition of their day, so that an insert never fails.
CREATE TABLE "formats_schema".rate_limit_violation_rest PARTITION OF "formats_schema".rate_limit_violation DEFAULT;

CREATE FUNCTION "formats_schema".rate_limit_violation_row() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $row$
BEGIN
    IF NEW.rule_id IS NULL THEN
        NEW.rule_id := (SELECT rule_id FROM "formats_schema".rate_limit_rule WHERE name = NEW.rule_name);
    END IF;
    RETURN NEW;
END
$row$;

-- Triggers need no privilege for their function. A user who could attach it to another table could learn the
-- names of rules.
REVOKE EXECUTE ON FUNCTION "formats_schema".rate_limit_violation_row() FROM PUBLIC;

CREATE TRIGGER rate_limit_violation_row BEFORE INSERT ON "formats_schema".rate_limit_violation
    FOR EACH ROW EXECUTE FUNCTION "formats_schema".rate_limit_violation_row();

-- rate_limit_violation_numbers reserves IDs for new rows, and returns the time. With fixed IDs, a client can
-- safely repeat a write.
CREATE FUNCTION "formats_schema".rate_limit_violation_numbers(n integer, OUT numbers bigint[], OUT at timestamptz)
LANGUAGE sql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
AS $numbers$
    SELECT array_agg(nextval('"formats_schema".rate_limit_violation_violation_id_seq')), clock_timestamp()
    FROM generate_series(1, least(n, 100000));
$numbers$;

-- rate_limit_violation_maintain creates the partitions of the days around at (null: now), and drops the
-- partitions whose rows are all older than keep. Nodes can call it concurrently. It runs with its owner's
-- privileges: any user with the DELETE privilege can call it, without a privilege to create or drop tables.
--
-- A day with rows in the default partition gets no partition. These rows are deleted by age, in batches.
CREATE FUNCTION "formats_schema".rate_limit_violation_maintain(at timestamptz, keep interval, OUT made integer, OUT dropped integer, OUT trimmed integer)
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp
SET datestyle = 'ISO' -- other styles are ambiguous in partition bounds
SET timezone = 'UTC'
SET lock_timeout = '2s'
AS $maintain$
DECLARE
    parent CONSTANT regclass := '"formats_schema".rate_limit_violation';
    home   CONSTANT oid := (SELECT relnamespace FROM pg_class WHERE oid = parent);
    spot   CONSTANT name := (SELECT nspname FROM pg_namespace WHERE oid = home);
    stem   CONSTANT text := 'rate_limit_violation_p';
    today  CONSTANT date := (coalesce(at, clock_timestamp()) AT TIME ZONE 'UTC')::date;
    oldest CONSTANT timestamptz := coalesce(at, clock_timestamp()) - keep;
    first  CONSTANT date := greatest(today - 1, (oldest AT TIME ZONE 'UTC')::date);
    day    date;
    part   text;
BEGIN
    IF NOT has_table_privilege(session_user, parent, 'DELETE') THEN
        RAISE insufficient_privilege USING MESSAGE = 'permission denied for ' || parent || ': the user needs the DELETE privilege';
    END IF;
    made := 0; dropped := 0; trimmed := 0;
    PERFORM pg_advisory_xact_lock(1835365477::bigint << 32 | parent::oid::bigint);
    FOR day IN SELECT today + n FROM generate_series(first - today, 3) n LOOP
        part := stem || to_char(day, 'YYYYMMDD');
        CONTINUE WHEN EXISTS (SELECT FROM pg_class WHERE relname = part AND relnamespace = home);
        CONTINUE WHEN EXISTS (SELECT FROM "formats_schema".rate_limit_violation_rest
            WHERE requested_at >= day::timestamp AT TIME ZONE 'UTC' AND requested_at < (day + 1)::timestamp AT TIME ZONE 'UTC');
        EXECUTE format('CREATE TABLE %I.%I PARTITION OF %s FOR VALUES FROM (%L) TO (%L)', spot, part, parent,
            day::timestamp AT TIME ZONE 'UTC', (day + 1)::timestamp AT TIME ZONE 'UTC');
        made := made + 1;
    END LOOP;
    FOR part IN
        SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent = parent AND c.relname ~ ('^' || stem || '[0-9]{8}$')
            AND c.relname < stem || to_char(oldest AT TIME ZONE 'UTC', 'YYYYMMDD')
        ORDER BY c.relname
    LOOP
        EXECUTE format('DROP TABLE %I.%I', spot, part);
        dropped := dropped + 1;
    END LOOP;
    DELETE FROM "formats_schema".rate_limit_violation_rest WHERE (requested_at, violation_id) IN (
        SELECT requested_at, violation_id FROM "formats_schema".rate_limit_violation_rest
        WHERE requested_at < oldest ORDER BY requested_at LIMIT 10000);
    GET DIAGNOSTICS trimmed = ROW_COUNT;
END
$maintain$;

SELECT "formats_schema".rate_limit_violation_maintain(NULL, interval '30 days');
$migration$;
		INSERT INTO "formats_schema".migration (version, name) VALUES (3, 'violation');
	END IF;
END
$mete$;

DO $mete$
BEGIN
	IF NOT EXISTS (SELECT FROM "formats_schema".migration WHERE version = 4) THEN
		EXECUTE $migration$
-- SPDX-License-Identifier: Apache-2.0
--
-- The nodes that share the buckets of a prefix, and their shared secret.

-- A row is a server and its last heartbeat. After a crash of the database, the table is empty until the next
-- heartbeats.
CREATE UNLOGGED TABLE "formats_schema".node (
    prefix bytea       NOT NULL,
    id     text        NOT NULL,
    seen   timestamptz NOT NULL,

    CONSTRAINT node_pkey PRIMARY KEY (prefix, id)
) WITH (fillfactor = 50);

COMMENT ON TABLE "formats_schema".node IS 'Servers of mete that currently use this schema.';

CREATE TABLE "formats_schema".secret (
    prefix  bytea       NOT NULL,
    secret  text        NOT NULL,
    made_at timestamptz NOT NULL DEFAULT now(),

    CONSTRAINT secret_pkey PRIMARY KEY (prefix)
);

COMMENT ON TABLE "formats_schema".secret IS 'The secret for deriving hash keys. A reader can find the client of a hashed key by trying values.';
$migration$;
		INSERT INTO "formats_schema".migration (version, name) VALUES (4, 'node');
	END IF;
END
$mete$;

DO $mete$
BEGIN
	IF NOT EXISTS (SELECT FROM "formats_schema".migration WHERE version = 5) THEN
		EXECUTE $migration$
-- SPDX-License-Identifier: Apache-2.0
--
-- Small documents that servers share, such as overrides from the API. The table is logged, so that a crash does
-- not lift a block.

CREATE TABLE "formats_schema".document (
    prefix     bytea       NOT NULL,
    name       text        NOT NULL,
    revision   bigint      NOT NULL CHECK (revision > 0),
    data       bytea       NOT NULL,
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),

    CONSTRAINT document_pkey PRIMARY KEY (prefix, name)
);

COMMENT ON TABLE "formats_schema".document IS 'Documents that servers of mete share, such as overrides. Change them with mete override.';
$migration$;
		INSERT INTO "formats_schema".migration (version, name) VALUES (5, 'document');
	END IF;
END
$mete$;

DO $mete$
BEGIN
	IF NOT EXISTS (SELECT FROM "formats_schema".migration WHERE version = 6) THEN
		EXECUTE $migration$
-- SPDX-License-Identifier: Apache-2.0
--
-- Holds, and the histories of their buckets. Package bucket documents histories and their arithmetic.
--
-- A history is an entry of the column others, after all accounts. A row with a history therefore always has others,
-- and the functions for plain takes leave it alone. The fields of a history are
--
--   lim     held: and the limit of its account
--   spent   the instant from which on it is not needed: the last expiry, and the last start of waiting work
--   as_of   the longest time from a take to its expiry; without holds, how long the last take awaits its cancellation
--   prev    the first expiry of a hold that is refunded then, or 0
--   log     the ID of the history, and five numbers per epoch: start, least, later, back, holds
--
-- The ID is the transaction that began the history. A hold returns tokens only to the history with its ID, because a reset has
-- deleted any other together with the row.

CREATE FUNCTION "formats_schema".history(list "formats_schema".account[], lim text) RETURNS "formats_schema".account
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	a "formats_schema".account;
BEGIN
	FOREACH a IN ARRAY list LOOP
		IF a.lim = 'held:' || lim THEN RETURN a; END IF;
	END LOOP;
	RETURN NULL;
END $$;

-- kept_history returns the history of an account that lacks s at clock, or NULL once all holds have expired.
CREATE FUNCTION "formats_schema".kept_history(l "formats_schema".rate_limit, h "formats_schema".account, clock bigint, as_of bigint, s bigint) RETURNS "formats_schema".account
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
	IF h.lim IS NULL OR greatest(clock, as_of) >= h.spent AND h.prev = 0 AND NOT
		(l.algorithm < 2 AND s > l.c * CASE l.algorithm WHEN 0 THEN l.p ELSE 1 END) THEN RETURN NULL; END IF;
	RETURN h;
END $$;

-- noted returns the history after a take of cost at the instant at: s was missing before it, and after follows.
CREATE FUNCTION "formats_schema".noted(l "formats_schema".rate_limit, h "formats_schema".account, s bigint, after bigint, cost bigint, wait bigint, at bigint) RETURNS "formats_schema".account
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	unit CONSTANT bigint := CASE l.algorithm WHEN 0 THEN l.p ELSE 1 END;
	e bigint[] := h.log;
	size CONSTANT int := cardinality(e);
	owed CONSTANT bigint := after - l.c * unit;
BEGIN
	IF h.lim IS NULL OR l.algorithm > 1 THEN RETURN h; END IF;
	e[size - 3] := least(e[size - 3], s);
	IF owed > 0 AND wait <> -2 THEN
		e[size - 2] := least(e[size - 2], greatest((l.c - cost) * unit - (l.n - owed % l.n) % l.n, 0));
		IF NOT l.calendar THEN -- else the call may lack the windows until the start
			h.spent := greatest(h.spent, at + "formats_schema".ceiling(owed, l.n) * CASE l.algorithm WHEN 1 THEN l.p ELSE 1 END);
		END IF;
	END IF;
	h.log := e;
	RETURN h;
END $$;

-- returned returns the history after a refund: s was missing before it, and after follows.
CREATE FUNCTION "formats_schema".returned(l "formats_schema".rate_limit, h "formats_schema".account, s bigint, after bigint) RETURNS "formats_schema".account
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	e bigint[] := h.log;
	size CONSTANT int := cardinality(e);
BEGIN
	IF h.lim IS NULL OR l.algorithm > 1 THEN RETURN h; END IF;
	e[size - 3] := least(e[size - 3], after);
	e[size - 1] := least(e[size - 1] + s - after, 9007199254740991);
	h.log := e;
	RETURN h;
END $$;

-- withdraw lowers the minima of a history, and returns them with the part of back that is left: see bucket.History.
CREATE FUNCTION "formats_schema".withdraw(l "formats_schema".rate_limit, INOUT e bigint[], INOUT back bigint, cost bigint, t bigint, at bigint, s bigint)
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	most bigint := 9007199254740991;
	size CONSTANT int := cardinality(e) / 5;
	rest CONSTANT bigint := greatest(cost - "formats_schema".refills(l, t, at), 0);
	own bigint := least(back, rest);
	first int := 1;
	i int;
	low bigint; later bigint; stop bigint;
BEGIN
	WHILE first < size AND e[5 * first + 1] <= t LOOP first := first + 1; END LOOP;
	IF e[5 * first - 4] > t THEN most := rest; END IF;
	FOR j IN first .. size LOOP
		i := 5 * j;
		low := e[i - 3]; later := e[i - 2]; stop := at;
		IF j < size THEN stop := e[i + 1]; ELSE low := least(low, s); END IF;
		e[i - 3] := greatest(low - back, 0);
		IF later < 9007199254740991 THEN e[i - 2] := greatest(later - back, 0); END IF;
		IF j = first AND e[i - 4] <= t THEN low := greatest(low, cost - "formats_schema".refills(l, t, stop)); END IF;
		back := least(greatest(least(back, low), own), later);
		own := least(own, later);
	END LOOP;
	back := least(back, most);
END $$;

-- pruned returns epochs without those in which no hold can be open, and joins the oldest two while there are too many.
CREATE FUNCTION "formats_schema".pruned(e bigint[], longest bigint, at bigint) RETURNS bigint[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
	WHILE cardinality(e) > 5 AND at - e[6] >= longest LOOP e := e[6:]; END LOOP;
	WHILE cardinality(e) > 40 LOOP
		e := ARRAY[e[1], least(e[2], e[7]), least(e[3], e[8]), least(e[4] + e[9], 9007199254740991), e[5] + e[10]] || e[11:];
	END LOOP;
	RETURN e;
END $$;

-- refunded_accounts returns the entries of a row after a refund of back to all accounts, or after a cancellation for the
-- account with this limit. A cost of -1 is no take. starts are the windows of a calendar limit. The other parameters are those of
-- canceled.
CREATE FUNCTION "formats_schema".refunded_accounts(list "formats_schema".account[], key bytea, clock bigint, lim text, back bigint,
	cost bigint, taken_at bigint, missed bigint, starts bigint[]) RETURNS "formats_schema".account[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	l "formats_schema".rate_limit;
	a "formats_schema".account; was "formats_schema".account; h "formats_schema".account;
	kept "formats_schema".account[] := '{}'; histories "formats_schema".account[] := '{}';
	r record; w record;
	unit bigint; asked bigint; part bigint; later bigint; owes boolean;
	e bigint[]; -- the epochs
BEGIN
	FOREACH was IN ARRAY list LOOP
		CONTINUE WHEN was.lim LIKE 'held:%';
		l := "formats_schema".limit_of(was.lim, key);
		IF was.lim = lim THEN l.starts := starts; END IF;
		a := was;
		h := "formats_schema".history(list, was.lim);
		IF h.lim IS NULL THEN
			IF cost < 0 THEN a := "formats_schema".refunded(l, a, clock, back);
			ELSIF a.lim = lim THEN a := "formats_schema".canceled(l, a, clock, back, cost, taken_at, missed);
			END IF;
			kept := kept || a;
			CONTINUE;
		END IF;
		IF cost < 0 OR a.lim = lim THEN
			SELECT * FROM "formats_schema".missing(l, a, clock) INTO r;
			h := "formats_schema".kept_history(l, h, clock, a.as_of, r.s);
			IF cost < 0 THEN
				a := "formats_schema".refunded(l, a, clock, back);
				IF l.algorithm < 2 AND was.spent > 0 AND back > 0 THEN h := "formats_schema".returned(l, h, r.s, a.spent); END IF;
			ELSIF l.algorithm > 1 OR h.lim IS NULL THEN
				a := "formats_schema".canceled(l, a, clock, back, cost, taken_at, missed);
			ELSIF least(back, cost) > 0 AND a.spent > 0 THEN
				unit := CASE l.algorithm WHEN 0 THEN l.p ELSE 1 END;
				asked := least(back, cost) * unit;
				owes := r.s > l.c * unit;
				later := r.s - missed + "formats_schema".refills(l, taken_at, r.t);
				e := h.log[2:];
				SELECT * FROM "formats_schema".withdraw(l, e, asked, cost * unit, taken_at, r.t, r.s) INTO w;
				part := w.back;
				IF owes AND e[1] > taken_at THEN
					part := CASE WHEN back >= cost AND later = 0 THEN asked ELSE 0 END;
				ELSIF owes THEN
					FOR j IN REVERSE cardinality(e) / 5 .. 1 LOOP
						later := later + e[5 * j - 1];
						EXIT WHEN e[5 * j - 4] <= taken_at;
					END LOOP;
					part := greatest(asked - greatest(later, 0), w.back);
				END IF;
				part := least(part, r.s);
				IF part > 0 THEN
					h.log := h.log[1] || w.e;
					h := "formats_schema".returned(l, h, r.s, r.s - part);
					a.spent := r.s - part; a.as_of := r.t; a.prev := 0; a.log := NULL;
				END IF;
			END IF;
		END IF;
		kept := kept || a;
		IF h.lim IS NOT NULL THEN histories := histories || h; END IF;
	END LOOP;
	RETURN kept || histories;
END $$;

-- changed_history returns the entries of a row with another history for the account with this limit. An action of 1 opens a
-- hold that expires at till, 2 extends it, and 3 closes it. An action of 4 is for a take that awaits its cancellation for till
-- microseconds. t is the instant of the take, which left s missing. A new history gets this ID. It begins behind the takes
-- of this instant while the account is in debt: see bucket.History.
CREATE FUNCTION "formats_schema".changed_history(list "formats_schema".account[], key bytea, clock bigint, lim text, action int,
	t bigint, s bigint, till bigint, refund boolean, id bigint) RETURNS "formats_schema".account[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	l CONSTANT "formats_schema".rate_limit := "formats_schema".limit_of(lim, key);
	a "formats_schema".account; own "formats_schema".account; h "formats_schema".account;
	kept "formats_schema".account[] := '{}';
	e bigint[];
	size int;
	holds CONSTANT bigint := CASE action WHEN 1 THEN 1 ELSE 0 END;
	sum bigint := 0;
	owes CONSTANT boolean := l.algorithm < 2 AND s > l.c * CASE l.algorithm WHEN 0 THEN l.p ELSE 1 END;
BEGIN
	FOREACH a IN ARRAY list LOOP
		IF a.lim = lim THEN own := a; END IF;
		IF a.lim <> 'held:' || lim THEN kept := kept || a; END IF;
	END LOOP;
	IF own.lim IS NULL THEN RETURN list; END IF;
	h := "formats_schema".history(list, lim);
	h := "formats_schema".kept_history(l, h, clock, own.as_of, (SELECT m.s FROM "formats_schema".missing(l, own, clock) AS m));
	IF h.lim IS NULL AND action IN (1, 4) THEN
		h := ROW('held:' || lim, 0, 0, 0, ARRAY[id, CASE WHEN owes THEN t + 1 ELSE t END, s, 9007199254740991, 0, 0])::"formats_schema".account;
	END IF;
	IF h.lim IS NULL THEN RETURN kept; END IF;
	IF action < 3 THEN
		h.spent := greatest(h.spent, till, own.as_of + 1);
		h.as_of := greatest(h.as_of, till - t);
		IF refund AND (h.prev = 0 OR till < h.prev) THEN h.prev := till; END IF;
	END IF;
	e := h.log[2:];
	size := cardinality(e);
	IF action = 4 THEN
		FOR j IN 1 .. size / 5 LOOP sum := sum + e[5 * j]; END LOOP;
		h.spent := greatest(h.spent, t + till);
		IF till > h.as_of OR sum = 0 THEN h.as_of := till; END IF;
	END IF;
	IF action IN (1, 4) THEN
		IF e[size - 4] >= t OR t - e[size - 4] < "formats_schema".ceiling(h.as_of, 7) THEN
			e[size - 3] := least(e[size - 3], s);
			e[size] := e[size] + holds;
		ELSE
			e := e || ARRAY[t, s, CASE WHEN owes THEN e[size - 2] ELSE 9007199254740991 END, 0, holds];
		END IF;
		e := "formats_schema".pruned(e, h.as_of, greatest(clock, own.as_of));
	ELSIF action = 3 THEN
		FOR j IN REVERSE size / 5 .. 1 LOOP
			IF e[5 * j - 4] <= t OR j = 1 THEN
				e[5 * j] := greatest(e[5 * j] - 1, 0);
				EXIT;
			END IF;
		END LOOP;
	END IF;
	h.log := h.log[1] || e;
	RETURN kept || h;
END $$;

-- awaits_only reports whether a row has one account with at most a history, which has no hold to refund.
CREATE FUNCTION "formats_schema".awaits_only(lim text, others "formats_schema".account[]) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN others IS NULL OR cardinality(others) = 1 AND (others[1]).prev = 0 AND (others[1]).lim = 'held:' || lim;

CREATE TYPE "formats_schema".charged AS (spent bigint, as_of bigint, due bigint, others "formats_schema".account[]);

-- awaited returns an account of a token bucket after a take of cost at t, and the other entries of its row. It equals opened,
-- written and changed_history for a row that passes awaits_only, and a bucket without debt after the take. The take awaits its
-- cancellation for this many microseconds; 0 awaits none.
CREATE FUNCTION "formats_schema".awaited(lim text, spent bigint, as_of bigint, others "formats_schema".account[], t bigint, cost bigint, await bigint, n bigint)
RETURNS "formats_schema".charged
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
	most CONSTANT bigint := 9007199254740991;
	s CONSTANT bigint := CASE WHEN t - as_of > spent / n THEN 0 ELSE spent - greatest(t - as_of, 0) * n END;
	after CONSTANT bigint := s + cost;
	due bigint := t + after / n + 1;
	h "formats_schema".account;
	e bigint[]; -- the history's ID, and its epochs
	size int;
	holds bigint := 0;
BEGIN
	IF others IS NOT NULL THEN h := others[1]; END IF;
	IF h.lim IS NULL OR t >= h.spent THEN
		IF await = 0 OR s = 0 THEN RETURN ROW(after, t, due, NULL::"formats_schema".account[]); END IF;
		RETURN ROW(after, t, greatest(due, t + await),
			ARRAY[ROW('held:' || lim, t + await, await, 0, ARRAY[pg_current_xact_id()::text::bigint, t, after, most, 0, 0])::"formats_schema".account]);
	END IF;
	e := h.log;
	size := cardinality(e);
	IF s < e[size - 3] THEN e[size - 3] := s; END IF;
	IF await > 0 THEN
		h.spent := greatest(h.spent, t + await);
		IF await <> h.as_of THEN
			FOR i IN 1 .. size / 5 LOOP holds := holds + e[5 * i + 1]; END LOOP;
			IF await > h.as_of OR holds = 0 THEN h.as_of := await; END IF;
		END IF;
		IF e[size - 4] < t AND (t - e[size - 4]) * 7 >= h.as_of THEN e := e || ARRAY[t, after, most, 0, 0]; END IF;
		size := cardinality(e);
		IF size > 6 AND (size > 41 OR t - e[7] >= h.as_of) THEN e := e[1] || "formats_schema".pruned(e[2:], h.as_of, t); END IF;
	END IF;
	h.log := e;
	RETURN ROW(after, t, greatest(due, h.spent), ARRAY[h]);
END $$;

-- settled returns an account of a token bucket after a cancellation at t, and the other entries of its row. The cancellation
-- returns at most back of a take of cost. It equals refunded_accounts for a row that passes awaits_only, and a bucket without debt. back is at most cost.
CREATE FUNCTION "formats_schema".settled(spent bigint, as_of bigint, others "formats_schema".account[], t bigint, back bigint, cost bigint, taken_at bigint, n bigint)
RETURNS "formats_schema".charged
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	most CONSTANT bigint := 9007199254740991;
	s CONSTANT bigint := CASE WHEN t - as_of > spent / n THEN 0 ELSE spent - greatest(t - as_of, 0) * n END;
	unfilled CONSTANT bigint := CASE WHEN t - taken_at > cost / n THEN 0 ELSE cost - greatest(t - taken_at, 0) * n END; -- of the take
	part bigint := back;
	h "formats_schema".account;
	e bigint[]; -- the history's ID, and its epochs
	size int;
	first int := 2;
	own bigint; low bigint; later bigint;
BEGIN
	IF others IS NOT NULL THEN h := others[1]; END IF;
	IF h.lim IS NULL OR t >= h.spent THEN
		part := least(part, s, unfilled);
		IF part <= 0 THEN RETURN ROW(spent, as_of, as_of + spent / n + 1, NULL::"formats_schema".account[]); END IF;
		RETURN ROW(s - part, t, t + (s - part) / n + 1, NULL::"formats_schema".account[]);
	END IF;
	e := h.log;
	size := cardinality(e);
	-- As in withdraw.
	own := least(back, unfilled);
	WHILE first < size - 4 AND e[first + 5] <= taken_at LOOP first := first + 5; END LOOP;
	FOR i IN first .. size - 4 BY 5 LOOP
		low := e[i + 1]; later := e[i + 2];
		IF i = size - 4 THEN low := least(low, s); END IF;
		e[i + 1] := greatest(low - part, 0);
		IF later < most THEN e[i + 2] := greatest(later - part, 0); END IF;
		IF i = first AND e[i] <= taken_at THEN
			low := greatest(low, CASE WHEN i = size - 4 THEN unfilled
				WHEN e[i + 5] - taken_at > cost / n THEN 0 ELSE cost - (e[i + 5] - taken_at) * n END);
		END IF;
		part := least(greatest(least(part, low), own), later);
		own := least(own, later);
	END LOOP;
	part := least(part, s, CASE WHEN e[first] > taken_at THEN unfilled ELSE most END);
	IF part <= 0 THEN RETURN ROW(spent, as_of, greatest(as_of + spent / n + 1, h.spent), others); END IF;
	IF s - part < e[size - 3] THEN e[size - 3] := s - part; END IF;
	e[size - 1] := least(e[size - 1] + part, most);
	h.log := e;
	RETURN ROW(s - part, t, greatest(t + (s - part) / n + 1, h.spent), ARRAY[h]);
END $$;

-- awaited_or_settled is awaited for an amount above 0, and settled for 0. Clients call it, with any search path.
CREATE FUNCTION "formats_schema".awaited_or_settled(lim text, spent bigint, as_of bigint, others "formats_schema".account[], t bigint, amount bigint,
	await bigint, back bigint, cost bigint, taken_at bigint, n bigint) RETURNS "formats_schema".charged
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF amount > 0 THEN RETURN "formats_schema".awaited(lim, spent, as_of, others, t, amount, await, n); END IF;
	RETURN "formats_schema".settled(spent, as_of, others, t, back, cost, taken_at, n);
END $$;

-- has_max_holds reports whether an account has 10000 holds: see bucket.Row.Holds. Most have so few that it need not drop the
-- ended ones.
CREATE FUNCTION "formats_schema".has_max_holds(list "formats_schema".account[], key bytea, clock bigint, lim text) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	l "formats_schema".rate_limit;
	a "formats_schema".account; h "formats_schema".account := "formats_schema".history(list, lim);
	e bigint[] := h.log[2:];
	sum bigint := 0;
BEGIN
	FOR j IN 1 .. coalesce(cardinality(e), 0) / 5 LOOP sum := sum + e[5 * j]; END LOOP;
	IF sum < 10000 THEN RETURN false; END IF;
	l := "formats_schema".limit_of(lim, key);
	FOREACH a IN ARRAY list LOOP
		CONTINUE WHEN a.lim <> lim;
		h := "formats_schema".kept_history(l, h, clock, a.as_of, (SELECT m.s FROM "formats_schema".missing(l, a, clock) AS m));
		IF h.lim IS NULL THEN RETURN false; END IF;
		e := "formats_schema".pruned(e, h.as_of, greatest(clock, a.as_of));
	END LOOP;
	sum := 0;
	FOR j IN 1 .. cardinality(e) / 5 LOOP sum := sum + e[5 * j]; END LOOP;
	RETURN sum >= 10000;
END $$;

-- turned_accounts returns a row with its calendar accounts in the windows that contain clock: see turned. Accounts whose windows
-- the call lacks are not turned.
CREATE FUNCTION "formats_schema".turned_accounts(list "formats_schema".account[], key bytea, calendars text[], windows bigint[], clock bigint) RETURNS "formats_schema".account[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	a "formats_schema".account;
BEGIN
	FOR i IN 1 .. cardinality(list) LOOP
		a := list[i];
		CONTINUE WHEN a.lim NOT LIKE '1:%.%';
		a.log := "formats_schema".turned("formats_schema".limit_of(a.lim, key), a, "formats_schema".starts_of(calendars, windows, a.lim), clock);
		list[i] := a;
	END LOOP;
	RETURN list;
END $$;

-- needed_window returns an instant at which a call needs a window of a limit, or NULL. The call needs the windows since the
-- instant t of a take, until newest. A bucket is full after more windows than a call can carry.
CREATE FUNCTION "formats_schema".needed_window(lim text, starts bigint[], t bigint, clock bigint, newest bigint) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
	IF lim NOT LIKE '1:%.%' THEN RETURN NULL; END IF;
	IF "formats_schema".window_of(starts, t) = 0 AND "formats_schema".window_of(starts, clock) <= 1000 THEN RETURN t; END IF;
	RETURN CASE WHEN starts[cardinality(starts)] <= newest THEN newest END;
END $$;

-- A hold_part is the charge of one bucket: see store.Terms. It was taken at taken_at, and missed was spent then. history is
-- the ID of the account's history, or NULL if the part cost nothing.
CREATE TYPE "formats_schema".hold_part AS (key bytea, lim text, cost bigint, kept boolean, fixed bigint, asked bigint, unit int, taken_at bigint, missed bigint,
	history bigint);

-- has_history reports whether a row still has the history of a part. Otherwise it was reset, or the part cost nothing.
CREATE FUNCTION "formats_schema".has_history(list "formats_schema".account[], part "formats_schema".hold_part) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	h CONSTANT "formats_schema".account := "formats_schema".history(list, part.lim);
BEGIN
	RETURN coalesce(h.log[1] = part.history, false);
END $$;

-- settle_target returns the cost of a part after a settlement with these amounts: see store.Terms.
CREATE FUNCTION "formats_schema".settle_target(part "formats_schema".hold_part, actual bigint[]) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	amount CONSTANT bigint := actual[least(part.unit + 1, cardinality(actual))];
	total CONSTANT bigint := least(part.fixed + amount, 9007199254740991);
BEGIN
	IF part.kept OR amount = -1 THEN RETURN part.cost; END IF;
	IF part.asked = 0 OR part.asked = part.cost THEN RETURN total; END IF;
	RETURN least(div(total::numeric * part.cost + part.asked - 1, part.asked), 9007199254740991);
END $$;

-- The part below exists for each of the two bucket tables.
DO $both$
DECLARE
	name text;
BEGIN
FOREACH name IN ARRAY ARRAY['bucket', 'bucket_durable'] LOOP
EXECUTE replace(replace($each$

-- An open hold expires at expires. After until, no call finds the hold. Both are by the clock of the take, and drop_at is
-- by the server's clock.
CREATE {unlogged} TABLE "formats_schema".{bucket}_hold (
	id      bytea PRIMARY KEY,
	expires bigint NOT NULL,
	until   bigint NOT NULL,
	drop_at bigint NOT NULL,
	settled boolean NOT NULL,
	refund  boolean NOT NULL,
	actual  bigint NOT NULL, -- the first amount of the settlement
	name    text COLLATE "C" NOT NULL, -- a hash of the ID, which orders refunds at one instant
	answer  bigint[] NOT NULL,
	limits  text[] NOT NULL,
	parts   "formats_schema".hold_part[] NOT NULL,
	slots   bytea[] NOT NULL -- the keys of the slots that the take took, which are no parts
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

CREATE INDEX ON "formats_schema".{bucket}_hold (drop_at);

-- Refunds of holds at their expiry.
CREATE {unlogged} TABLE "formats_schema".{bucket}_hold_due (
	key     bytea NOT NULL,
	expires bigint NOT NULL,
	name    text COLLATE "C" NOT NULL,
	part    "formats_schema".hold_part NOT NULL,
	PRIMARY KEY (key, expires, name)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- write_accounts writes the entries of a locked row.
CREATE FUNCTION "formats_schema".{bucket}_write_accounts(k bytea, list "formats_schema".account[], shift bigint) RETURNS void
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off AS $$
DECLARE
	a "formats_schema".account;
BEGIN
	FOR i IN 1 .. cardinality(list) LOOP -- drop the results of turned
		a := list[i];
		CONTINUE WHEN a.lim NOT LIKE '1:%.%';
		a.log := NULL;
		list[i] := a;
	END LOOP;
	a := list[1];
	UPDATE "formats_schema".{bucket} b SET lim = a.lim, spent = a.spent, as_of = a.as_of, prev = nullif(a.prev, 0), log = a.log,
		others = CASE WHEN cardinality(list) > 1 THEN list[2:] END, full_at = "formats_schema".due(list, k) + shift
		WHERE b.key = k;
END $$;

-- is_due reports whether a row has a hold to refund.
CREATE FUNCTION "formats_schema".{bucket}_is_due(others "formats_schema".account[], clock bigint) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
	FOR i IN 1 .. coalesce(cardinality(others), 0) LOOP
		IF others[i].prev BETWEEN 1 AND clock AND others[i].lim LIKE 'held:%' THEN RETURN true; END IF;
	END LOOP;
	RETURN false;
END $$;

-- refund_due refunds the expired holds of locked rows, each at its expiry. It ignores holds of an earlier history. If it needs
-- windows of calendars that the call lacks, it returns the instants and limits, and leaves their rows alone.
CREATE FUNCTION "formats_schema".{bucket}_refund_due(keys bytea[], clock bigint, shift bigint, calendars text[], windows bigint[],
	OUT needs bigint[], OUT needing text[])
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off AS $$
DECLARE
	r record; d record;
	k bytea;
	list "formats_schema".account[];
	part "formats_schema".hold_part;
	next bigint; at bigint;
	complete boolean;
BEGIN
	needs := '{}'; needing := '{}';
	FOREACH k IN ARRAY keys LOOP
		SELECT * FROM "formats_schema".{bucket} b WHERE b.key = k INTO r;
		CONTINUE WHEN NOT "formats_schema".{bucket}_is_due(r.others, clock);
		complete := true;
		FOR d IN SELECT * FROM "formats_schema".{bucket}_hold_due x WHERE x.key = k AND x.expires <= clock LOOP
			part := d.part;
			at := "formats_schema".needed_window(part.lim, "formats_schema".starts_of(calendars, windows, part.lim), part.taken_at, clock, clock);
			CONTINUE WHEN at IS NULL;
			needs := needs || at; needing := needing || part.lim;
			complete := false;
		END LOOP;
		CONTINUE WHEN NOT complete;
		list := ARRAY[ROW(r.lim, r.spent, r.as_of, coalesce(r.prev, 0), r.log)::"formats_schema".account] || r.others;
		FOR d IN SELECT * FROM "formats_schema".{bucket}_hold_due x WHERE x.key = k AND x.expires <= clock ORDER BY x.expires, x.name LOOP
			part := d.part;
			CONTINUE WHEN NOT "formats_schema".has_history(list, part);
			list := "formats_schema".turned_accounts(list, k, calendars, windows, d.expires);
			IF part.cost > "formats_schema".settle_target(part, '{0}') THEN
				list := "formats_schema".refunded_accounts(list, k, d.expires, part.lim, part.cost - "formats_schema".settle_target(part, '{0}'),
					part.cost, part.taken_at, part.missed, "formats_schema".starts_of(calendars, windows, part.lim));
			END IF;
			list := "formats_schema".changed_history(list, k, d.expires, part.lim, 3, part.taken_at, 0, 0, false, 0);
		END LOOP;
		DELETE FROM "formats_schema".{bucket}_hold_due x WHERE x.key = k AND x.expires <= clock;
		SELECT coalesce(min(x.expires), 0) FROM "formats_schema".{bucket}_hold_due x WHERE x.key = k INTO next;
		FOR i IN 2 .. cardinality(list) LOOP
			IF (list[i]).lim LIKE 'held:%' THEN
				list[i] := ROW((list[i]).lim, (list[i]).spent, (list[i]).as_of, next, (list[i]).log)::"formats_schema".account;
			END IF;
		END LOOP;
		PERFORM "formats_schema".{bucket}_write_accounts(k, list, shift);
	END LOOP;
END $$;

-- take_and_settle makes takes and cancellations of one token bucket each. Its rounds end at these positions. The keys of a
-- round ascend, and the first round has all keys, so that calls lock rows in one order. A take has a cost as its amount, and
-- awaits its cancellation for this many microseconds; 0 awaits none. A cancellation has an amount of 0. It returns at most back
-- of a take of cost at the instant taken_at. All amounts are in units of 1/p thousandth. which is the position of the limit
-- among lims, c and n.
--
-- It returns a row for each call that it could decide, with its position and the numbers of take_one. It leaves out buckets in
-- debt, rows with other accounts or holds to refund, and cancellations without a row.
CREATE FUNCTION "formats_schema".{bucket}_take_and_settle(clock bigint, rounds bigint[], keys bytea[], which bigint[], amounts bigint[], awaits bigint[],
	costs bigint[], backs bigint[], takens bigint[], lims text[], c bigint[], n bigint[], flag boolean)
RETURNS TABLE (i bigint, took bigint, spent bigint, as_of bigint, now bigint)
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
	given CONSTANT boolean := clock >= 0;
	shift bigint := 0;
	first bigint := 1;
	final bigint;
	done bigint;
BEGIN
	IF given THEN shift := "formats_schema".microseconds() - clock + 3600000000; END IF;
	FOREACH final IN ARRAY rounds LOOP
		-- took passes the position.
		RETURN QUERY INSERT INTO "formats_schema".{bucket} AS b (key, lim, spent, as_of, full_at, took)
			SELECT k.key, lims[k.which], k.amount, CASE WHEN given THEN clock ELSE "formats_schema".microseconds() END,
				"formats_schema".full_after(CASE WHEN given THEN clock ELSE "formats_schema".microseconds() END, k.amount, n[k.which]) + shift, first + k.o - 1000001
			FROM unnest(keys[first:final], which[first:final], amounts[first:final]) WITH ORDINALITY AS k (key, which, amount, o)
			WHERE k.amount > 0 OR EXISTS (SELECT FROM "formats_schema".{bucket} x WHERE x.key = k.key)
			ON CONFLICT (key) DO UPDATE SET
				(spent, as_of, full_at, took, others) = (SELECT (z.r).spent, (z.r).as_of, (z.r).due + shift, z.w, (z.r).others
					FROM (SELECT y.w, CASE WHEN excluded.spent > 0
						THEN "formats_schema".awaited(b.lim, b.spent, b.as_of, b.others, y.t, excluded.spent, awaits[y.w], y.n)
						ELSE "formats_schema".settled(b.spent, b.as_of, b.others, y.t, backs[y.w], costs[y.w], takens[y.w], y.n) END AS r
					FROM (SELECT x.w, x.n, greatest(CASE WHEN given THEN clock ELSE "formats_schema".microseconds() END, b.as_of,
						"formats_schema".earliest(b.spent, b.as_of, excluded.spent, c[which[x.w]], x.n)) AS t
					FROM (SELECT v.w, n[which[v.w]] AS n
					FROM (SELECT excluded.took + 1000000 AS w OFFSET 0) v OFFSET 0) x OFFSET 0) y OFFSET 0) z)
			WHERE b.lim = excluded.lim AND "formats_schema".awaits_only(b.lim, b.others) AND CASE WHEN given THEN clock ELSE "formats_schema".microseconds() END >=
				"formats_schema".earliest(b.spent, b.as_of, excluded.spent, c[which[excluded.took + 1000000]], n[which[excluded.took + 1000000]])
			RETURNING CASE WHEN b.took < 0 THEN b.took + 1000000 ELSE b.took END,
				amounts[CASE WHEN b.took < 0 THEN b.took + 1000000 ELSE b.took END], b.spent,
				CASE WHEN b.took < 0 AND NOT given AND "formats_schema".microseconds() > b.as_of + 1000 THEN "formats_schema".{bucket}_late(b.key) ELSE b.as_of END,
				CASE WHEN given THEN clock ELSE "formats_schema".microseconds() END;
		GET DIAGNOSTICS done = ROW_COUNT;
		IF done <= final - first THEN -- by the current states; for a charged key, the first result row counts
			IF NOT given THEN clock := "formats_schema".microseconds(); END IF;
			RETURN QUERY SELECT first - 1 + s.i, 0::bigint, s.spent, s.as_of, clock FROM "formats_schema".{bucket}_states(keys[first:final]) s
				WHERE amounts[first - 1 + s.i] > 0 AND s.lim = lims[which[first - 1 + s.i]] AND "formats_schema".awaits_only(s.lim, s.others) AND
					"formats_schema".refilled(s.spent, s.as_of, clock, n[which[first - 1 + s.i]]) + amounts[first - 1 + s.i] > c[which[first - 1 + s.i]];
			IF NOT given THEN clock := -1; END IF;
		END IF;
		first := final + 1;
	END LOOP;
END $$;

-- lock_hold lets calls for one ID run one after another, before they lock any row. A new hold has no row to lock. Calls for
-- other IDs that have the same hash wait, too.
CREATE FUNCTION "formats_schema".{bucket}_lock_hold(hold_id bytea) RETURNS void
LANGUAGE sql VOLATILE
BEGIN ATOMIC
	SELECT pg_advisory_xact_lock(hashtextextended(encode(hold_id, 'hex'), '"formats_schema".{bucket}_hold'::regclass::oid::bigint));
END;

-- hold makes a hold of one take: see take for the first five parameters, and for calendars and windows. terms has four numbers
-- per charge: 1 to keep the cost, the fixed part, the unscaled cost, and the unit. refusal is empty, or the reason to refuse the hold. It
-- is 'slots' for a repeated hold with an ended slot: the caller then takes the slots again.
CREATE FUNCTION "formats_schema".{bucket}_hold(clock bigint, keys bytea[], lims text[], numbers bigint[], program bigint[],
	hold_id bytea, hold_name text, ttl bigint, refund boolean, horizon bigint, terms bigint[],
	calendars text[], windows bigint[], OUT answers bigint[], OUT limits text[], OUT refusal text)
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_variable
DECLARE
	given CONSTANT boolean := clock >= 0;
	base CONSTANT int := CASE program[1] WHEN 3 THEN 2 + 3 * program[2] ELSE 0 END; -- after the penalties
	charges CONSTANT int := program[base + 5];
	shift bigint := 0;
	fresh bytea[];
	r record;
	part "formats_schema".hold_part;
	parts "formats_schema".hold_part[] := '{}';
	slots bytea[] := '{}';
	needs bigint[]; g bigint[];
	x int; y int;
BEGIN
	refusal := '';
	limits := '{}';
	PERFORM "formats_schema".{bucket}_lock_hold(hold_id);
	IF given THEN shift := "formats_schema".microseconds() - clock + 3600000000; END IF;
	SELECT * FROM "formats_schema".{bucket}_hold h WHERE h.id = hold_id INTO r;
	IF FOUND THEN -- a repeated call, or a hold that no call finds anymore
		fresh := "formats_schema".{bucket}_lock(keys);
		IF NOT given THEN clock := "formats_schema".microseconds(); END IF;
		SELECT d.needs, d.needing FROM "formats_schema".{bucket}_refund_due(keys, clock, shift, calendars, windows) AS d INTO needs, limits;
		IF cardinality(limits) > 0 THEN
			answers := ARRAY[3, clock] || needs;
		ELSIF r.until > clock THEN
			answers := r.answer;
			limits := r.limits;
			FOR j IN 1 .. charges LOOP
				x := program[base + 2 + 5 * j];
				CONTINUE WHEN numbers[8 * x - 7] <> 4 OR program[base + 3 + 5 * j] = 0;
				g := "formats_schema".slots_live((SELECT b.log FROM "formats_schema".{bucket} b WHERE b.key = keys[program[base + 1 + 5 * j]]), clock);
				IF "formats_schema".slots_without(g, program[base + 4 + 5 * j], program[base + 5 + 5 * j]) = g THEN refusal := 'slots'; END IF;
			END LOOP;
			IF (SELECT array_agg(k ORDER BY k) FROM (SELECT p.key FROM unnest(r.parts) AS p UNION ALL SELECT unnest(r.slots)) AS h (k)) IS DISTINCT FROM keys THEN
				refusal := 'keys';
			END IF;
		END IF;
		IF NOT given THEN clock := -1; END IF;
	END IF;
	IF answers IS NULL THEN
		IF (SELECT c.reltuples FROM pg_class c WHERE c.oid = '"formats_schema".{bucket}_hold'::regclass) >= 262144 THEN refusal := 'full'; END IF;
		FOR j IN 1 .. charges LOOP
			CONTINUE WHEN numbers[8 * program[base + 2 + 5 * j] - 7] = 4;
			program[base + 4 + 5 * j] := -ttl;
			program[base + 5 + 5 * j] := refund::int;
		END LOOP;
		IF refusal = '' THEN
			SELECT t.answers, t.limits FROM "formats_schema".{bucket}_take(clock, keys, lims, numbers, program, '{}', calendars, windows, false) AS t INTO answers, limits;
			IF answers[1] = 4 THEN refusal := 'full'; END IF;
		END IF;
		IF answers[1] = 1 THEN
			clock := answers[2];
			answers := answers[: 2 + 6 * charges]; -- without penalties
			answers[1] := 2;
			limits := '{}';
			FOR j IN 1 .. charges LOOP
				x := program[base + 2 + 5 * j];
				limits := limits || lims[x];
				IF numbers[8 * x - 7] = 4 THEN
					slots := slots || keys[program[base + 1 + 5 * j]];
					CONTINUE;
				END IF;
				y := 6 * j - 3; -- of the charge in the answer
				part := ROW(keys[program[base + 1 + 5 * j]], lims[x], answers[y], terms[4 * j - 3] = 1, terms[4 * j - 2], terms[4 * j - 1], terms[4 * j],
					answers[y + 3] + CASE WHEN numbers[8 * x - 7] = 3 THEN clock ELSE 0 END, answers[y + 2], nullif(answers[y + 5], 0))::"formats_schema".hold_part;
				answers[y + 5] := 0;
				parts := parts || part;
				IF refund AND part.cost > 0 THEN
					INSERT INTO "formats_schema".{bucket}_hold_due (key, expires, name, part) VALUES (part.key, clock + ttl, hold_name, part);
				END IF;
			END LOOP;
			INSERT INTO "formats_schema".{bucket}_hold AS h (id, expires, until, drop_at, settled, refund, actual, name, answer, limits, parts, slots)
				VALUES (hold_id, clock + ttl, clock + ttl + horizon, clock + ttl + horizon + shift, false, refund, 0, hold_name, answers, limits, parts, slots)
				ON CONFLICT (id) DO UPDATE SET expires = excluded.expires, until = excluded.until, drop_at = excluded.drop_at, settled = false,
					refund = excluded.refund, actual = 0, answer = excluded.answer, limits = excluded.limits, parts = excluded.parts, slots = excluded.slots;
		END IF;
	END IF;
	IF fresh IS NOT NULL THEN DELETE FROM "formats_schema".{bucket} b WHERE b.key = ANY (fresh) AND b.lim = ''; END IF;
END $$;

-- settle settles a hold with these amounts, or renews it if ttl is above 0. The result has four numbers. The state is 0 (unknown),
-- 1 (open), 2 (settled) or 3 (expired). The expiry and the first settled amount follow. The last is 1 if this call has settled the
-- hold. calendars and windows are those of take. If the call lacks windows, it answers like take, and settles nothing.
CREATE FUNCTION "formats_schema".{bucket}_settle(clock bigint, hold_id bytea, actual bigint[], ttl bigint, horizon bigint,
	calendars text[], windows bigint[], OUT answers bigint[], OUT limits text[])
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp
SET enable_seqscan = off
SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_variable
DECLARE
	given CONSTANT boolean := clock >= 0;
	shift bigint := 0;
	fresh bytea[];
	h record; r record; m record;
	part "formats_schema".hold_part;
	l "formats_schema".rate_limit;
	own "formats_schema".account;
	list "formats_schema".account[]; lists "formats_schema".accounts[] := '{}';
	more bigint; over boolean; wait bigint; g bigint[]; sum bigint; t bigint;
	keys bytea[];
	starts bigint[]; at bigint; newest bigint;
BEGIN
	limits := '{}';
	answers := '{0,0,0,0}';
	PERFORM "formats_schema".{bucket}_lock_hold(hold_id);
	SELECT * FROM "formats_schema".{bucket}_hold x WHERE x.id = hold_id INTO h FOR UPDATE;
	IF NOT FOUND THEN RETURN; END IF;
	IF given THEN shift := "formats_schema".microseconds() - clock + 3600000000; END IF;
	SELECT coalesce(array_agg(p.key ORDER BY p.key), '{}') FROM unnest(h.parts) AS p INTO keys;
	fresh := "formats_schema".{bucket}_lock(keys);
	IF NOT given THEN clock := "formats_schema".microseconds(); END IF;
	IF h.until <= clock THEN
		DELETE FROM "formats_schema".{bucket} b WHERE b.key = ANY (fresh) AND b.lim = '';
		RETURN;
	END IF;
	SELECT d.needs, d.needing FROM "formats_schema".{bucket}_refund_due(keys, clock, shift, calendars, windows) AS d INTO answers, limits;
	IF cardinality(limits) > 0 THEN
		answers := ARRAY[3, clock] || answers;
		DELETE FROM "formats_schema".{bucket} b WHERE b.key = ANY (fresh) AND b.lim = '';
		RETURN;
	END IF;
	IF h.settled OR h.expires <= clock THEN
		DELETE FROM "formats_schema".{bucket} b WHERE b.key = ANY (fresh) AND b.lim = '';
		answers := ARRAY[CASE WHEN h.settled THEN 2 ELSE 3 END, h.expires, h.actual, 0];
		RETURN;
	END IF;
	FOREACH part IN ARRAY h.parts LOOP
		SELECT * FROM "formats_schema".{bucket} b WHERE b.key = part.key INTO r;
		list := '{}';
		IF r.lim <> '' THEN
			list := ARRAY[ROW(r.lim, r.spent, r.as_of, coalesce(r.prev, 0), r.log)::"formats_schema".account] || r.others;
		END IF;
		list := "formats_schema".turned_accounts(list, part.key, calendars, windows, clock);
		starts := "formats_schema".starts_of(calendars, windows, part.lim);
		newest := clock;
		FOREACH own IN ARRAY list LOOP
			CONTINUE WHEN own.lim LIKE 'held:%';
			newest := greatest(newest, own.as_of);
			IF own.lim LIKE '1:%.%' AND own.log IS NULL THEN answers := answers || own.as_of; limits := limits || own.lim; END IF;
		END LOOP;
		at := "formats_schema".needed_window(part.lim, starts, part.taken_at, clock, newest);
		IF at IS NOT NULL THEN answers := answers || at; limits := limits || part.lim; END IF;
		CONTINUE WHEN cardinality(limits) > 0;
		over := NOT "formats_schema".has_history(list, part);
		IF h.refund AND NOT over THEN
			over := NOT EXISTS (SELECT FROM "formats_schema".{bucket}_hold_due x WHERE x.key = part.key AND x.expires = h.expires AND x.name = h.name);
		END IF;
		IF ttl > 0 THEN
			IF NOT over THEN
				list := "formats_schema".changed_history(list, part.key, clock, part.lim, 2, part.taken_at, 0, clock + ttl, h.refund, 0);
				UPDATE "formats_schema".{bucket}_hold_due x SET expires = clock + ttl WHERE x.key = part.key AND x.expires = h.expires AND x.name = h.name;
			END IF;
			lists := lists || ROW(list)::"formats_schema".accounts;
			CONTINUE;
		END IF;
		more := "formats_schema".settle_target(part, actual) - part.cost;
		IF more > 0 THEN
			l := "formats_schema".limit_of(part.lim, part.key);
			l.starts := starts;
			SELECT * FROM "formats_schema".opened(l, part.lim, list, part.key, clock) INTO m;
			own := m.own;
			SELECT * FROM "formats_schema".missing(l, own, clock) INTO m;
			IF l.algorithm = 3 THEN
				wait := "formats_schema".log_wait(l, coalesce(own.log, '{}'), m.w::int, m.s, clock, more, -2);
			ELSE
				wait := CASE WHEN "formats_schema".admits(l, clock, m.s, m.t, m.w, more, -2) THEN 0 ELSE 1 END;
			END IF;
			IF wait <> 0 THEN
				DELETE FROM "formats_schema".{bucket} b WHERE b.key = ANY (fresh) AND b.lim = '';
				answers := ARRAY[1, h.expires, 0, 0];
				RETURN;
			END IF;
			IF l.algorithm = 3 THEN
				SELECT * FROM "formats_schema".log_spent(l, coalesce(own.log, '{}'), m.w::int, m.t, more) INTO g, sum, t;
				own.spent := sum; own.as_of := t; own.prev := 0; own.log := g;
			ELSE
				own.spent := m.s + more * CASE l.algorithm WHEN 0 THEN l.p ELSE 1 END;
				own.as_of := m.t; own.prev := m.w; own.log := NULL;
			END IF;
			list := "formats_schema".written(own, list, part.key, clock, more, m.s, -2);
		ELSIF more < 0 AND NOT over THEN
			list := "formats_schema".refunded_accounts(list, part.key, clock, part.lim, -more, part.cost, part.taken_at, part.missed, starts);
		END IF;
		IF NOT over THEN
			list := "formats_schema".changed_history(list, part.key, clock, part.lim, 3, part.taken_at, 0, 0, false, 0);
		END IF;
		lists := lists || ROW(list)::"formats_schema".accounts;
	END LOOP;
	IF cardinality(limits) > 0 THEN
		answers := ARRAY[3, clock] || answers;
		DELETE FROM "formats_schema".{bucket} b WHERE b.key = ANY (fresh) AND b.lim = '';
		RETURN;
	END IF;
	FOR i IN 1 .. cardinality(h.parts) LOOP
		part := h.parts[i];
		list := (lists[i]).list;
		IF cardinality(list) > 0 THEN PERFORM "formats_schema".{bucket}_write_accounts(part.key, list, shift); END IF;
		IF ttl = 0 AND h.refund THEN
			DELETE FROM "formats_schema".{bucket}_hold_due x WHERE x.key = part.key AND x.expires = h.expires AND x.name = h.name;
		END IF;
	END LOOP;
	IF fresh IS NOT NULL THEN DELETE FROM "formats_schema".{bucket} b WHERE b.key = ANY (fresh) AND b.lim = ''; END IF;
	IF ttl > 0 THEN
		UPDATE "formats_schema".{bucket}_hold x SET expires = clock + ttl, until = clock + ttl + horizon, drop_at = clock + ttl + horizon + shift WHERE x.id = hold_id;
		answers := ARRAY[1, clock + ttl, 0, 0];
		RETURN;
	END IF;
	UPDATE "formats_schema".{bucket}_hold x SET settled = true, actual = {bucket}_settle.actual[1], until = greatest(h.expires, clock) + horizon,
		drop_at = greatest(h.expires, clock) + horizon + shift WHERE x.id = hold_id;
	answers := ARRAY[2, h.expires, actual[1], 1];
END $$;

-- sweep_holds deletes up to most holds that no call finds anymore, and refunds of deleted rows.
CREATE FUNCTION "formats_schema".{bucket}_sweep_holds(most int) RETURNS bigint
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	gone bigint;
BEGIN
	DELETE FROM "formats_schema".{bucket}_hold WHERE ctid = ANY (ARRAY(
		SELECT h.ctid FROM "formats_schema".{bucket}_hold h WHERE h.drop_at < "formats_schema".microseconds() LIMIT most FOR UPDATE SKIP LOCKED));
	GET DIAGNOSTICS gone = ROW_COUNT;
	DELETE FROM "formats_schema".{bucket}_hold_due d WHERE d.ctid = ANY (ARRAY(
		SELECT e.ctid FROM "formats_schema".{bucket}_hold_due e WHERE e.expires < "formats_schema".microseconds() - 120000000
			AND NOT EXISTS (SELECT FROM "formats_schema".{bucket} b WHERE b.key = e.key)
			LIMIT most FOR UPDATE SKIP LOCKED));
	RETURN gone;
END $$;
$each$, '{bucket}', name), '{unlogged}', CASE name WHEN 'bucket' THEN 'UNLOGGED' ELSE '' END);
END LOOP;
END $both$;
$migration$;
		INSERT INTO "formats_schema".migration (version, name) VALUES (6, 'hold');
	END IF;
END
$mete$;

COMMIT;
