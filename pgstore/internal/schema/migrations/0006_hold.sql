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

CREATE FUNCTION {schema}.history(list {schema}.account[], lim text) RETURNS {schema}.account
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	a {schema}.account;
BEGIN
	FOREACH a IN ARRAY list LOOP
		IF a.lim = 'held:' || lim THEN RETURN a; END IF;
	END LOOP;
	RETURN NULL;
END $$;

-- kept_history returns the history of an account that lacks s at clock, or NULL once all holds have expired.
CREATE FUNCTION {schema}.kept_history(l {schema}.rate_limit, h {schema}.account, clock bigint, as_of bigint, s bigint) RETURNS {schema}.account
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
	IF h.lim IS NULL OR greatest(clock, as_of) >= h.spent AND h.prev = 0 AND NOT
		(l.algorithm < 2 AND s > l.c * CASE l.algorithm WHEN 0 THEN l.p ELSE 1 END) THEN RETURN NULL; END IF;
	RETURN h;
END $$;

-- noted returns the history after a take of cost at the instant at: s was missing before it, and after follows.
CREATE FUNCTION {schema}.noted(l {schema}.rate_limit, h {schema}.account, s bigint, after bigint, cost bigint, wait bigint, at bigint) RETURNS {schema}.account
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
			h.spent := greatest(h.spent, at + {schema}.ceiling(owed, l.n) * CASE l.algorithm WHEN 1 THEN l.p ELSE 1 END);
		END IF;
	END IF;
	h.log := e;
	RETURN h;
END $$;

-- returned returns the history after a refund: s was missing before it, and after follows.
CREATE FUNCTION {schema}.returned(l {schema}.rate_limit, h {schema}.account, s bigint, after bigint) RETURNS {schema}.account
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
CREATE FUNCTION {schema}.withdraw(l {schema}.rate_limit, INOUT e bigint[], INOUT back bigint, cost bigint, t bigint, at bigint, s bigint)
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	most bigint := 9007199254740991;
	size CONSTANT int := cardinality(e) / 5;
	rest CONSTANT bigint := greatest(cost - {schema}.refills(l, t, at), 0);
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
		IF j = first AND e[i - 4] <= t THEN low := greatest(low, cost - {schema}.refills(l, t, stop)); END IF;
		back := least(greatest(least(back, low), own), later);
		own := least(own, later);
	END LOOP;
	back := least(back, most);
END $$;

-- pruned returns epochs without those in which no hold can be open, and joins the oldest two while there are too many.
CREATE FUNCTION {schema}.pruned(e bigint[], longest bigint, at bigint) RETURNS bigint[]
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
CREATE FUNCTION {schema}.refunded_accounts(list {schema}.account[], key bytea, clock bigint, lim text, back bigint,
	cost bigint, taken_at bigint, missed bigint, starts bigint[]) RETURNS {schema}.account[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	l {schema}.rate_limit;
	a {schema}.account; was {schema}.account; h {schema}.account;
	kept {schema}.account[] := '{}'; histories {schema}.account[] := '{}';
	r record; w record;
	unit bigint; asked bigint; part bigint; later bigint; owes boolean;
	e bigint[]; -- the epochs
BEGIN
	FOREACH was IN ARRAY list LOOP
		CONTINUE WHEN was.lim LIKE 'held:%';
		l := {schema}.limit_of(was.lim, key);
		IF was.lim = lim THEN l.starts := starts; END IF;
		a := was;
		h := {schema}.history(list, was.lim);
		IF h.lim IS NULL THEN
			IF cost < 0 THEN a := {schema}.refunded(l, a, clock, back);
			ELSIF a.lim = lim THEN a := {schema}.canceled(l, a, clock, back, cost, taken_at, missed);
			END IF;
			kept := kept || a;
			CONTINUE;
		END IF;
		IF cost < 0 OR a.lim = lim THEN
			SELECT * FROM {schema}.missing(l, a, clock) INTO r;
			h := {schema}.kept_history(l, h, clock, a.as_of, r.s);
			IF cost < 0 THEN
				a := {schema}.refunded(l, a, clock, back);
				IF l.algorithm < 2 AND was.spent > 0 AND back > 0 THEN h := {schema}.returned(l, h, r.s, a.spent); END IF;
			ELSIF l.algorithm > 1 OR h.lim IS NULL THEN
				a := {schema}.canceled(l, a, clock, back, cost, taken_at, missed);
			ELSIF least(back, cost) > 0 AND a.spent > 0 THEN
				unit := CASE l.algorithm WHEN 0 THEN l.p ELSE 1 END;
				asked := least(back, cost) * unit;
				owes := r.s > l.c * unit;
				later := r.s - missed + {schema}.refills(l, taken_at, r.t);
				e := h.log[2:];
				SELECT * FROM {schema}.withdraw(l, e, asked, cost * unit, taken_at, r.t, r.s) INTO w;
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
					h := {schema}.returned(l, h, r.s, r.s - part);
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
CREATE FUNCTION {schema}.changed_history(list {schema}.account[], key bytea, clock bigint, lim text, action int,
	t bigint, s bigint, till bigint, refund boolean, id bigint) RETURNS {schema}.account[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	l CONSTANT {schema}.rate_limit := {schema}.limit_of(lim, key);
	a {schema}.account; own {schema}.account; h {schema}.account;
	kept {schema}.account[] := '{}';
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
	h := {schema}.history(list, lim);
	h := {schema}.kept_history(l, h, clock, own.as_of, (SELECT m.s FROM {schema}.missing(l, own, clock) AS m));
	IF h.lim IS NULL AND action IN (1, 4) THEN
		h := ROW('held:' || lim, 0, 0, 0, ARRAY[id, CASE WHEN owes THEN t + 1 ELSE t END, s, 9007199254740991, 0, 0])::{schema}.account;
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
		IF e[size - 4] >= t OR t - e[size - 4] < {schema}.ceiling(h.as_of, 7) THEN
			e[size - 3] := least(e[size - 3], s);
			e[size] := e[size] + holds;
		ELSE
			e := e || ARRAY[t, s, CASE WHEN owes THEN e[size - 2] ELSE 9007199254740991 END, 0, holds];
		END IF;
		e := {schema}.pruned(e, h.as_of, greatest(clock, own.as_of));
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
CREATE FUNCTION {schema}.awaits_only(lim text, others {schema}.account[]) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN others IS NULL OR cardinality(others) = 1 AND (others[1]).prev = 0 AND (others[1]).lim = 'held:' || lim;

CREATE TYPE {schema}.charged AS (spent bigint, as_of bigint, due bigint, others {schema}.account[]);

-- awaited returns an account of a token bucket after a take of cost at t, and the other entries of its row. It equals opened,
-- written and changed_history for a row that passes awaits_only, and a bucket without debt after the take. The take awaits its
-- cancellation for this many microseconds; 0 awaits none.
CREATE FUNCTION {schema}.awaited(lim text, spent bigint, as_of bigint, others {schema}.account[], t bigint, cost bigint, await bigint, n bigint)
RETURNS {schema}.charged
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
	most CONSTANT bigint := 9007199254740991;
	s CONSTANT bigint := CASE WHEN t - as_of > spent / n THEN 0 ELSE spent - greatest(t - as_of, 0) * n END;
	after CONSTANT bigint := s + cost;
	due bigint := t + after / n + 1;
	h {schema}.account;
	e bigint[]; -- the history's ID, and its epochs
	size int;
	holds bigint := 0;
BEGIN
	IF others IS NOT NULL THEN h := others[1]; END IF;
	IF h.lim IS NULL OR t >= h.spent THEN
		IF await = 0 OR s = 0 THEN RETURN ROW(after, t, due, NULL::{schema}.account[]); END IF;
		RETURN ROW(after, t, greatest(due, t + await),
			ARRAY[ROW('held:' || lim, t + await, await, 0, ARRAY[pg_current_xact_id()::text::bigint, t, after, most, 0, 0])::{schema}.account]);
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
		IF size > 6 AND (size > 41 OR t - e[7] >= h.as_of) THEN e := e[1] || {schema}.pruned(e[2:], h.as_of, t); END IF;
	END IF;
	h.log := e;
	RETURN ROW(after, t, greatest(due, h.spent), ARRAY[h]);
END $$;

-- settled returns an account of a token bucket after a cancellation at t, and the other entries of its row. The cancellation
-- returns at most back of a take of cost. It equals refunded_accounts for a row that passes awaits_only, and a bucket without debt. back is at most cost.
CREATE FUNCTION {schema}.settled(spent bigint, as_of bigint, others {schema}.account[], t bigint, back bigint, cost bigint, taken_at bigint, n bigint)
RETURNS {schema}.charged
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	most CONSTANT bigint := 9007199254740991;
	s CONSTANT bigint := CASE WHEN t - as_of > spent / n THEN 0 ELSE spent - greatest(t - as_of, 0) * n END;
	unfilled CONSTANT bigint := CASE WHEN t - taken_at > cost / n THEN 0 ELSE cost - greatest(t - taken_at, 0) * n END; -- of the take
	part bigint := back;
	h {schema}.account;
	e bigint[]; -- the history's ID, and its epochs
	size int;
	first int := 2;
	own bigint; low bigint; later bigint;
BEGIN
	IF others IS NOT NULL THEN h := others[1]; END IF;
	IF h.lim IS NULL OR t >= h.spent THEN
		part := least(part, s, unfilled);
		IF part <= 0 THEN RETURN ROW(spent, as_of, as_of + spent / n + 1, NULL::{schema}.account[]); END IF;
		RETURN ROW(s - part, t, t + (s - part) / n + 1, NULL::{schema}.account[]);
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
CREATE FUNCTION {schema}.awaited_or_settled(lim text, spent bigint, as_of bigint, others {schema}.account[], t bigint, amount bigint,
	await bigint, back bigint, cost bigint, taken_at bigint, n bigint) RETURNS {schema}.charged
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF amount > 0 THEN RETURN {schema}.awaited(lim, spent, as_of, others, t, amount, await, n); END IF;
	RETURN {schema}.settled(spent, as_of, others, t, back, cost, taken_at, n);
END $$;

-- has_max_holds reports whether an account has 10000 holds: see bucket.Row.Holds. Most have so few that it need not drop the
-- ended ones.
CREATE FUNCTION {schema}.has_max_holds(list {schema}.account[], key bytea, clock bigint, lim text) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	l {schema}.rate_limit;
	a {schema}.account; h {schema}.account := {schema}.history(list, lim);
	e bigint[] := h.log[2:];
	sum bigint := 0;
BEGIN
	FOR j IN 1 .. coalesce(cardinality(e), 0) / 5 LOOP sum := sum + e[5 * j]; END LOOP;
	IF sum < 10000 THEN RETURN false; END IF;
	l := {schema}.limit_of(lim, key);
	FOREACH a IN ARRAY list LOOP
		CONTINUE WHEN a.lim <> lim;
		h := {schema}.kept_history(l, h, clock, a.as_of, (SELECT m.s FROM {schema}.missing(l, a, clock) AS m));
		IF h.lim IS NULL THEN RETURN false; END IF;
		e := {schema}.pruned(e, h.as_of, greatest(clock, a.as_of));
	END LOOP;
	sum := 0;
	FOR j IN 1 .. cardinality(e) / 5 LOOP sum := sum + e[5 * j]; END LOOP;
	RETURN sum >= 10000;
END $$;

-- turned_accounts returns a row with its calendar accounts in the windows that contain clock: see turned. Accounts whose windows
-- the call lacks are not turned.
CREATE FUNCTION {schema}.turned_accounts(list {schema}.account[], key bytea, calendars text[], windows bigint[], clock bigint) RETURNS {schema}.account[]
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	a {schema}.account;
BEGIN
	FOR i IN 1 .. cardinality(list) LOOP
		a := list[i];
		CONTINUE WHEN a.lim NOT LIKE '1:%.%';
		a.log := {schema}.turned({schema}.limit_of(a.lim, key), a, {schema}.starts_of(calendars, windows, a.lim), clock);
		list[i] := a;
	END LOOP;
	RETURN list;
END $$;

-- needed_window returns an instant at which a call needs a window of a limit, or NULL. The call needs the windows since the
-- instant t of a take, until newest. A bucket is full after more windows than a call can carry.
CREATE FUNCTION {schema}.needed_window(lim text, starts bigint[], t bigint, clock bigint, newest bigint) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
	IF lim NOT LIKE '1:%.%' THEN RETURN NULL; END IF;
	IF {schema}.window_of(starts, t) = 0 AND {schema}.window_of(starts, clock) <= 1000 THEN RETURN t; END IF;
	RETURN CASE WHEN starts[cardinality(starts)] <= newest THEN newest END;
END $$;

-- A hold_part is the charge of one bucket: see store.Terms. It was taken at taken_at, and missed was spent then. history is
-- the ID of the account's history, or NULL if the part cost nothing.
CREATE TYPE {schema}.hold_part AS (key bytea, lim text, cost bigint, kept boolean, fixed bigint, asked bigint, unit int, taken_at bigint, missed bigint,
	history bigint);

-- has_history reports whether a row still has the history of a part. Otherwise it was reset, or the part cost nothing.
CREATE FUNCTION {schema}.has_history(list {schema}.account[], part {schema}.hold_part) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
	h CONSTANT {schema}.account := {schema}.history(list, part.lim);
BEGIN
	RETURN coalesce(h.log[1] = part.history, false);
END $$;

-- settle_target returns the cost of a part after a settlement with these amounts: see store.Terms.
CREATE FUNCTION {schema}.settle_target(part {schema}.hold_part, actual bigint[]) RETURNS bigint
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
CREATE {unlogged} TABLE {schema}.{bucket}_hold (
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
	parts   {schema}.hold_part[] NOT NULL,
	slots   bytea[] NOT NULL -- the keys of the slots that the take took, which are no parts
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

CREATE INDEX ON {schema}.{bucket}_hold (drop_at);

-- Refunds of holds at their expiry.
CREATE {unlogged} TABLE {schema}.{bucket}_hold_due (
	key     bytea NOT NULL,
	expires bigint NOT NULL,
	name    text COLLATE "C" NOT NULL,
	part    {schema}.hold_part NOT NULL,
	PRIMARY KEY (key, expires, name)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- write_accounts writes the entries of a locked row.
CREATE FUNCTION {schema}.{bucket}_write_accounts(k bytea, list {schema}.account[], shift bigint) RETURNS void
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off AS $$
DECLARE
	a {schema}.account;
BEGIN
	FOR i IN 1 .. cardinality(list) LOOP -- drop the results of turned
		a := list[i];
		CONTINUE WHEN a.lim NOT LIKE '1:%.%';
		a.log := NULL;
		list[i] := a;
	END LOOP;
	a := list[1];
	UPDATE {schema}.{bucket} b SET lim = a.lim, spent = a.spent, as_of = a.as_of, prev = nullif(a.prev, 0), log = a.log,
		others = CASE WHEN cardinality(list) > 1 THEN list[2:] END, full_at = {schema}.due(list, k) + shift
		WHERE b.key = k;
END $$;

-- is_due reports whether a row has a hold to refund.
CREATE FUNCTION {schema}.{bucket}_is_due(others {schema}.account[], clock bigint) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
	FOR i IN 1 .. coalesce(cardinality(others), 0) LOOP
		IF others[i].prev BETWEEN 1 AND clock AND others[i].lim LIKE 'held:%' THEN RETURN true; END IF;
	END LOOP;
	RETURN false;
END $$;

-- refund_due refunds the expired holds of locked rows, each at its expiry. It ignores holds of an earlier history. If it needs
-- windows of calendars that the call lacks, it returns the instants and limits, and leaves their rows alone.
CREATE FUNCTION {schema}.{bucket}_refund_due(keys bytea[], clock bigint, shift bigint, calendars text[], windows bigint[],
	OUT needs bigint[], OUT needing text[])
LANGUAGE plpgsql VOLATILE
SET enable_seqscan = off AS $$
DECLARE
	r record; d record;
	k bytea;
	list {schema}.account[];
	part {schema}.hold_part;
	next bigint; at bigint;
	complete boolean;
BEGIN
	needs := '{}'; needing := '{}';
	FOREACH k IN ARRAY keys LOOP
		SELECT * FROM {schema}.{bucket} b WHERE b.key = k INTO r;
		CONTINUE WHEN NOT {schema}.{bucket}_is_due(r.others, clock);
		complete := true;
		FOR d IN SELECT * FROM {schema}.{bucket}_hold_due x WHERE x.key = k AND x.expires <= clock LOOP
			part := d.part;
			at := {schema}.needed_window(part.lim, {schema}.starts_of(calendars, windows, part.lim), part.taken_at, clock, clock);
			CONTINUE WHEN at IS NULL;
			needs := needs || at; needing := needing || part.lim;
			complete := false;
		END LOOP;
		CONTINUE WHEN NOT complete;
		list := ARRAY[ROW(r.lim, r.spent, r.as_of, coalesce(r.prev, 0), r.log)::{schema}.account] || r.others;
		FOR d IN SELECT * FROM {schema}.{bucket}_hold_due x WHERE x.key = k AND x.expires <= clock ORDER BY x.expires, x.name LOOP
			part := d.part;
			CONTINUE WHEN NOT {schema}.has_history(list, part);
			list := {schema}.turned_accounts(list, k, calendars, windows, d.expires);
			IF part.cost > {schema}.settle_target(part, '{0}') THEN
				list := {schema}.refunded_accounts(list, k, d.expires, part.lim, part.cost - {schema}.settle_target(part, '{0}'),
					part.cost, part.taken_at, part.missed, {schema}.starts_of(calendars, windows, part.lim));
			END IF;
			list := {schema}.changed_history(list, k, d.expires, part.lim, 3, part.taken_at, 0, 0, false, 0);
		END LOOP;
		DELETE FROM {schema}.{bucket}_hold_due x WHERE x.key = k AND x.expires <= clock;
		SELECT coalesce(min(x.expires), 0) FROM {schema}.{bucket}_hold_due x WHERE x.key = k INTO next;
		FOR i IN 2 .. cardinality(list) LOOP
			IF (list[i]).lim LIKE 'held:%' THEN
				list[i] := ROW((list[i]).lim, (list[i]).spent, (list[i]).as_of, next, (list[i]).log)::{schema}.account;
			END IF;
		END LOOP;
		PERFORM {schema}.{bucket}_write_accounts(k, list, shift);
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
CREATE FUNCTION {schema}.{bucket}_take_and_settle(clock bigint, rounds bigint[], keys bytea[], which bigint[], amounts bigint[], awaits bigint[],
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
	IF given THEN shift := {schema}.microseconds() - clock + 3600000000; END IF;
	FOREACH final IN ARRAY rounds LOOP
		-- took passes the position.
		RETURN QUERY INSERT INTO {schema}.{bucket} AS b (key, lim, spent, as_of, full_at, took)
			SELECT k.key, lims[k.which], k.amount, CASE WHEN given THEN clock ELSE {schema}.microseconds() END,
				{schema}.full_after(CASE WHEN given THEN clock ELSE {schema}.microseconds() END, k.amount, n[k.which]) + shift, first + k.o - 1000001
			FROM unnest(keys[first:final], which[first:final], amounts[first:final]) WITH ORDINALITY AS k (key, which, amount, o)
			WHERE k.amount > 0 OR EXISTS (SELECT FROM {schema}.{bucket} x WHERE x.key = k.key)
			ON CONFLICT (key) DO UPDATE SET
				(spent, as_of, full_at, took, others) = (SELECT (z.r).spent, (z.r).as_of, (z.r).due + shift, z.w, (z.r).others
					FROM (SELECT y.w, CASE WHEN excluded.spent > 0
						THEN {schema}.awaited(b.lim, b.spent, b.as_of, b.others, y.t, excluded.spent, awaits[y.w], y.n)
						ELSE {schema}.settled(b.spent, b.as_of, b.others, y.t, backs[y.w], costs[y.w], takens[y.w], y.n) END AS r
					FROM (SELECT x.w, x.n, greatest(CASE WHEN given THEN clock ELSE {schema}.microseconds() END, b.as_of,
						{schema}.earliest(b.spent, b.as_of, excluded.spent, c[which[x.w]], x.n)) AS t
					FROM (SELECT v.w, n[which[v.w]] AS n
					FROM (SELECT excluded.took + 1000000 AS w OFFSET 0) v OFFSET 0) x OFFSET 0) y OFFSET 0) z)
			WHERE b.lim = excluded.lim AND {schema}.awaits_only(b.lim, b.others) AND CASE WHEN given THEN clock ELSE {schema}.microseconds() END >=
				{schema}.earliest(b.spent, b.as_of, excluded.spent, c[which[excluded.took + 1000000]], n[which[excluded.took + 1000000]])
			RETURNING CASE WHEN b.took < 0 THEN b.took + 1000000 ELSE b.took END,
				amounts[CASE WHEN b.took < 0 THEN b.took + 1000000 ELSE b.took END], b.spent,
				CASE WHEN b.took < 0 AND NOT given AND {schema}.microseconds() > b.as_of + 1000 THEN {schema}.{bucket}_late(b.key) ELSE b.as_of END,
				CASE WHEN given THEN clock ELSE {schema}.microseconds() END;
		GET DIAGNOSTICS done = ROW_COUNT;
		IF done <= final - first THEN -- by the current states; for a charged key, the first result row counts
			IF NOT given THEN clock := {schema}.microseconds(); END IF;
			RETURN QUERY SELECT first - 1 + s.i, 0::bigint, s.spent, s.as_of, clock FROM {schema}.{bucket}_states(keys[first:final]) s
				WHERE amounts[first - 1 + s.i] > 0 AND s.lim = lims[which[first - 1 + s.i]] AND {schema}.awaits_only(s.lim, s.others) AND
					{schema}.refilled(s.spent, s.as_of, clock, n[which[first - 1 + s.i]]) + amounts[first - 1 + s.i] > c[which[first - 1 + s.i]];
			IF NOT given THEN clock := -1; END IF;
		END IF;
		first := final + 1;
	END LOOP;
END $$;

-- lock_hold lets calls for one ID run one after another, before they lock any row. A new hold has no row to lock. Calls for
-- other IDs that have the same hash wait, too.
CREATE FUNCTION {schema}.{bucket}_lock_hold(hold_id bytea) RETURNS void
LANGUAGE sql VOLATILE
BEGIN ATOMIC
	SELECT pg_advisory_xact_lock(hashtextextended(encode(hold_id, 'hex'), '{schema}.{bucket}_hold'::regclass::oid::bigint));
END;

-- hold makes a hold of one take: see take for the first five parameters, and for calendars and windows. terms has four numbers
-- per charge: 1 to keep the cost, the fixed part, the unscaled cost, and the unit. refusal is empty, or the reason to refuse the hold. It
-- is 'slots' for a repeated hold with an ended slot: the caller then takes the slots again.
CREATE FUNCTION {schema}.{bucket}_hold(clock bigint, keys bytea[], lims text[], numbers bigint[], program bigint[],
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
	part {schema}.hold_part;
	parts {schema}.hold_part[] := '{}';
	slots bytea[] := '{}';
	needs bigint[]; g bigint[];
	x int; y int;
BEGIN
	refusal := '';
	limits := '{}';
	PERFORM {schema}.{bucket}_lock_hold(hold_id);
	IF given THEN shift := {schema}.microseconds() - clock + 3600000000; END IF;
	SELECT * FROM {schema}.{bucket}_hold h WHERE h.id = hold_id INTO r;
	IF FOUND THEN -- a repeated call, or a hold that no call finds anymore
		fresh := {schema}.{bucket}_lock(keys);
		IF NOT given THEN clock := {schema}.microseconds(); END IF;
		SELECT d.needs, d.needing FROM {schema}.{bucket}_refund_due(keys, clock, shift, calendars, windows) AS d INTO needs, limits;
		IF cardinality(limits) > 0 THEN
			answers := ARRAY[3, clock] || needs;
		ELSIF r.until > clock THEN
			answers := r.answer;
			limits := r.limits;
			FOR j IN 1 .. charges LOOP
				x := program[base + 2 + 5 * j];
				CONTINUE WHEN numbers[8 * x - 7] <> 4 OR program[base + 3 + 5 * j] = 0;
				g := {schema}.slots_live((SELECT b.log FROM {schema}.{bucket} b WHERE b.key = keys[program[base + 1 + 5 * j]]), clock);
				IF {schema}.slots_without(g, program[base + 4 + 5 * j], program[base + 5 + 5 * j]) = g THEN refusal := 'slots'; END IF;
			END LOOP;
			IF (SELECT array_agg(k ORDER BY k) FROM (SELECT p.key FROM unnest(r.parts) AS p UNION ALL SELECT unnest(r.slots)) AS h (k)) IS DISTINCT FROM keys THEN
				refusal := 'keys';
			END IF;
		END IF;
		IF NOT given THEN clock := -1; END IF;
	END IF;
	IF answers IS NULL THEN
		IF (SELECT c.reltuples FROM pg_class c WHERE c.oid = '{schema}.{bucket}_hold'::regclass) >= 262144 THEN refusal := 'full'; END IF;
		FOR j IN 1 .. charges LOOP
			CONTINUE WHEN numbers[8 * program[base + 2 + 5 * j] - 7] = 4;
			program[base + 4 + 5 * j] := -ttl;
			program[base + 5 + 5 * j] := refund::int;
		END LOOP;
		IF refusal = '' THEN
			SELECT t.answers, t.limits FROM {schema}.{bucket}_take(clock, keys, lims, numbers, program, '{}', calendars, windows, false) AS t INTO answers, limits;
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
					answers[y + 3] + CASE WHEN numbers[8 * x - 7] = 3 THEN clock ELSE 0 END, answers[y + 2], nullif(answers[y + 5], 0))::{schema}.hold_part;
				answers[y + 5] := 0;
				parts := parts || part;
				IF refund AND part.cost > 0 THEN
					INSERT INTO {schema}.{bucket}_hold_due (key, expires, name, part) VALUES (part.key, clock + ttl, hold_name, part);
				END IF;
			END LOOP;
			INSERT INTO {schema}.{bucket}_hold AS h (id, expires, until, drop_at, settled, refund, actual, name, answer, limits, parts, slots)
				VALUES (hold_id, clock + ttl, clock + ttl + horizon, clock + ttl + horizon + shift, false, refund, 0, hold_name, answers, limits, parts, slots)
				ON CONFLICT (id) DO UPDATE SET expires = excluded.expires, until = excluded.until, drop_at = excluded.drop_at, settled = false,
					refund = excluded.refund, actual = 0, answer = excluded.answer, limits = excluded.limits, parts = excluded.parts, slots = excluded.slots;
		END IF;
	END IF;
	IF fresh IS NOT NULL THEN DELETE FROM {schema}.{bucket} b WHERE b.key = ANY (fresh) AND b.lim = ''; END IF;
END $$;

-- settle settles a hold with these amounts, or renews it if ttl is above 0. The result has four numbers. The state is 0 (unknown),
-- 1 (open), 2 (settled) or 3 (expired). The expiry and the first settled amount follow. The last is 1 if this call has settled the
-- hold. calendars and windows are those of take. If the call lacks windows, it answers like take, and settles nothing.
CREATE FUNCTION {schema}.{bucket}_settle(clock bigint, hold_id bytea, actual bigint[], ttl bigint, horizon bigint,
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
	part {schema}.hold_part;
	l {schema}.rate_limit;
	own {schema}.account;
	list {schema}.account[]; lists {schema}.accounts[] := '{}';
	more bigint; over boolean; wait bigint; g bigint[]; sum bigint; t bigint;
	keys bytea[];
	starts bigint[]; at bigint; newest bigint;
BEGIN
	limits := '{}';
	answers := '{0,0,0,0}';
	PERFORM {schema}.{bucket}_lock_hold(hold_id);
	SELECT * FROM {schema}.{bucket}_hold x WHERE x.id = hold_id INTO h FOR UPDATE;
	IF NOT FOUND THEN RETURN; END IF;
	IF given THEN shift := {schema}.microseconds() - clock + 3600000000; END IF;
	SELECT coalesce(array_agg(p.key ORDER BY p.key), '{}') FROM unnest(h.parts) AS p INTO keys;
	fresh := {schema}.{bucket}_lock(keys);
	IF NOT given THEN clock := {schema}.microseconds(); END IF;
	IF h.until <= clock THEN
		DELETE FROM {schema}.{bucket} b WHERE b.key = ANY (fresh) AND b.lim = '';
		RETURN;
	END IF;
	SELECT d.needs, d.needing FROM {schema}.{bucket}_refund_due(keys, clock, shift, calendars, windows) AS d INTO answers, limits;
	IF cardinality(limits) > 0 THEN
		answers := ARRAY[3, clock] || answers;
		DELETE FROM {schema}.{bucket} b WHERE b.key = ANY (fresh) AND b.lim = '';
		RETURN;
	END IF;
	IF h.settled OR h.expires <= clock THEN
		DELETE FROM {schema}.{bucket} b WHERE b.key = ANY (fresh) AND b.lim = '';
		answers := ARRAY[CASE WHEN h.settled THEN 2 ELSE 3 END, h.expires, h.actual, 0];
		RETURN;
	END IF;
	FOREACH part IN ARRAY h.parts LOOP
		SELECT * FROM {schema}.{bucket} b WHERE b.key = part.key INTO r;
		list := '{}';
		IF r.lim <> '' THEN
			list := ARRAY[ROW(r.lim, r.spent, r.as_of, coalesce(r.prev, 0), r.log)::{schema}.account] || r.others;
		END IF;
		list := {schema}.turned_accounts(list, part.key, calendars, windows, clock);
		starts := {schema}.starts_of(calendars, windows, part.lim);
		newest := clock;
		FOREACH own IN ARRAY list LOOP
			CONTINUE WHEN own.lim LIKE 'held:%';
			newest := greatest(newest, own.as_of);
			IF own.lim LIKE '1:%.%' AND own.log IS NULL THEN answers := answers || own.as_of; limits := limits || own.lim; END IF;
		END LOOP;
		at := {schema}.needed_window(part.lim, starts, part.taken_at, clock, newest);
		IF at IS NOT NULL THEN answers := answers || at; limits := limits || part.lim; END IF;
		CONTINUE WHEN cardinality(limits) > 0;
		over := NOT {schema}.has_history(list, part);
		IF h.refund AND NOT over THEN
			over := NOT EXISTS (SELECT FROM {schema}.{bucket}_hold_due x WHERE x.key = part.key AND x.expires = h.expires AND x.name = h.name);
		END IF;
		IF ttl > 0 THEN
			IF NOT over THEN
				list := {schema}.changed_history(list, part.key, clock, part.lim, 2, part.taken_at, 0, clock + ttl, h.refund, 0);
				UPDATE {schema}.{bucket}_hold_due x SET expires = clock + ttl WHERE x.key = part.key AND x.expires = h.expires AND x.name = h.name;
			END IF;
			lists := lists || ROW(list)::{schema}.accounts;
			CONTINUE;
		END IF;
		more := {schema}.settle_target(part, actual) - part.cost;
		IF more > 0 THEN
			l := {schema}.limit_of(part.lim, part.key);
			l.starts := starts;
			SELECT * FROM {schema}.opened(l, part.lim, list, part.key, clock) INTO m;
			own := m.own;
			SELECT * FROM {schema}.missing(l, own, clock) INTO m;
			IF l.algorithm = 3 THEN
				wait := {schema}.log_wait(l, coalesce(own.log, '{}'), m.w::int, m.s, clock, more, -2);
			ELSE
				wait := CASE WHEN {schema}.admits(l, clock, m.s, m.t, m.w, more, -2) THEN 0 ELSE 1 END;
			END IF;
			IF wait <> 0 THEN
				DELETE FROM {schema}.{bucket} b WHERE b.key = ANY (fresh) AND b.lim = '';
				answers := ARRAY[1, h.expires, 0, 0];
				RETURN;
			END IF;
			IF l.algorithm = 3 THEN
				SELECT * FROM {schema}.log_spent(l, coalesce(own.log, '{}'), m.w::int, m.t, more) INTO g, sum, t;
				own.spent := sum; own.as_of := t; own.prev := 0; own.log := g;
			ELSE
				own.spent := m.s + more * CASE l.algorithm WHEN 0 THEN l.p ELSE 1 END;
				own.as_of := m.t; own.prev := m.w; own.log := NULL;
			END IF;
			list := {schema}.written(own, list, part.key, clock, more, m.s, -2);
		ELSIF more < 0 AND NOT over THEN
			list := {schema}.refunded_accounts(list, part.key, clock, part.lim, -more, part.cost, part.taken_at, part.missed, starts);
		END IF;
		IF NOT over THEN
			list := {schema}.changed_history(list, part.key, clock, part.lim, 3, part.taken_at, 0, 0, false, 0);
		END IF;
		lists := lists || ROW(list)::{schema}.accounts;
	END LOOP;
	IF cardinality(limits) > 0 THEN
		answers := ARRAY[3, clock] || answers;
		DELETE FROM {schema}.{bucket} b WHERE b.key = ANY (fresh) AND b.lim = '';
		RETURN;
	END IF;
	FOR i IN 1 .. cardinality(h.parts) LOOP
		part := h.parts[i];
		list := (lists[i]).list;
		IF cardinality(list) > 0 THEN PERFORM {schema}.{bucket}_write_accounts(part.key, list, shift); END IF;
		IF ttl = 0 AND h.refund THEN
			DELETE FROM {schema}.{bucket}_hold_due x WHERE x.key = part.key AND x.expires = h.expires AND x.name = h.name;
		END IF;
	END LOOP;
	IF fresh IS NOT NULL THEN DELETE FROM {schema}.{bucket} b WHERE b.key = ANY (fresh) AND b.lim = ''; END IF;
	IF ttl > 0 THEN
		UPDATE {schema}.{bucket}_hold x SET expires = clock + ttl, until = clock + ttl + horizon, drop_at = clock + ttl + horizon + shift WHERE x.id = hold_id;
		answers := ARRAY[1, clock + ttl, 0, 0];
		RETURN;
	END IF;
	UPDATE {schema}.{bucket}_hold x SET settled = true, actual = {bucket}_settle.actual[1], until = greatest(h.expires, clock) + horizon,
		drop_at = greatest(h.expires, clock) + horizon + shift WHERE x.id = hold_id;
	answers := ARRAY[2, h.expires, actual[1], 1];
END $$;

-- sweep_holds deletes up to most holds that no call finds anymore, and refunds of deleted rows.
CREATE FUNCTION {schema}.{bucket}_sweep_holds(most int) RETURNS bigint
LANGUAGE plpgsql VOLATILE
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	gone bigint;
BEGIN
	DELETE FROM {schema}.{bucket}_hold WHERE ctid = ANY (ARRAY(
		SELECT h.ctid FROM {schema}.{bucket}_hold h WHERE h.drop_at < {schema}.microseconds() LIMIT most FOR UPDATE SKIP LOCKED));
	GET DIAGNOSTICS gone = ROW_COUNT;
	DELETE FROM {schema}.{bucket}_hold_due d WHERE d.ctid = ANY (ARRAY(
		SELECT e.ctid FROM {schema}.{bucket}_hold_due e WHERE e.expires < {schema}.microseconds() - 120000000
			AND NOT EXISTS (SELECT FROM {schema}.{bucket} b WHERE b.key = e.key)
			LIMIT most FOR UPDATE SKIP LOCKED));
	RETURN gone;
END $$;
$each$, '{bucket}', name), '{unlogged}', CASE name WHEN 'bucket' THEN 'UNLOGGED' ELSE '' END);
END LOOP;
END $both$;
