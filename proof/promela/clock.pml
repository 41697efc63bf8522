/* SPDX-License-Identifier: Apache-2.0
 *
 * A row of the PostgreSQL store: its lock, the clock and the sweeper.
 *
 * Takes of one bucket wait for the lock of its row, read the clock and write the row. A take in a caller's transaction keeps the
 * lock until the transaction commits or rolls back. The sweeper deletes the row of a full bucket. A take of a missing row
 * inserts it. The row has the missing tokens and the tick of this amount, so it refills by the clock alone.
 *
 * Left out: several keys, lanes, the look without a lock, clocks that step back, the row's second of life after it is full.
 *
 * Mirrors: pgstore/internal/schema/migrations/0001_bucket.sql: take_one, take, lock, late, sweep, microseconds
 * Mirrors: pgstore/tx.go: TakeTx
 * Mirrors: pgstore/sweep.go: sweep
 *
 * Checked: G1 after each admission, which counts at the tick at which it is written.
 *
 * SECURITY_8: a take reads the clock before it waits for the lock.
 * WITHOUT_FULL: the sweeper deletes a row that is not full.
 * WITHOUT_LOCK: a take in a transaction releases the row before the transaction ends.
 */

#define CAPACITY 2
#define RATE     1
#define TICKS    5
#define LEDGER   TICKS
#ifndef TAKERS
#define TAKERS   4
#endif

#include "bound.pml"

bool exists, locked;
byte spent, asOf; /* of the row */
byte next;        /* the taker that starts next: takers are alike, so their order does not matter */

#define missingAt(clock) (exists -> MINUS(spent, (MAX(clock, asOf) - asOf) * RATE) : 0)

active proctype clock() {
	do
	:: atomic { now < TICKS - 1 -> now++; printf("tick %d\n", now) }
	:: else -> break
	od
}

active [TAKERS] proctype taker() {
	byte time, cost, oldSpent, oldAsOf, at;
	bool existed, transaction;

	atomic { next == _pid - 1 ->
		next++;
		if
		:: cost = 1
		:: cost = 2
		fi;
		if
		:: transaction = true
		:: skip
		fi;
		time = now
	}
	atomic { !locked ->
		locked = true;
#ifndef SECURITY_8
		time = now;
#endif
		if
		:: missingAt(time) + cost <= CAPACITY ->
			oldSpent = spent; oldAsOf = asOf; existed = exists;
			spent = missingAt(time) + cost;
			asOf = (exists -> MAX(time, asOf) : time);
			exists = true;
			at = now;
			printf("taker %d takes %d: the row lacks %d at tick %d\n", _pid, cost, spent, asOf);
			start(0, now, cost)
		:: else ->
			printf("taker %d is denied\n", _pid);
			locked = false;
			goto end
		fi;
#ifdef WITHOUT_LOCK
		locked = false;
#endif
	}
	atomic { true ->
		if
		:: skip
		:: transaction ->
			exists = existed; spent = oldSpent; asOf = oldAsOf;
			unstart(0, at, cost);
			printf("taker %d rolls back\n", _pid)
		fi;
		locked = false
	}
end:	atomic { time = 0; cost = 0; oldSpent = 0; oldAsOf = 0; at = 0; existed = false; transaction = false }
}

active proctype sweeper() {
end:	do
#ifdef WITHOUT_FULL
	:: atomic { exists && !locked ->
#else
	:: atomic { exists && !locked && missingAt(now) == 0 ->
#endif
		exists = false; spent = 0; asOf = 0;
		printf("the sweeper deletes the row\n") }
	od
}
