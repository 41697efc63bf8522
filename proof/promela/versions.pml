/* SPDX-License-Identifier: Apache-2.0
 *
 * Two versions of a limit that share a bucket, as during a rolling deploy.
 *
 * The row of the bucket has an account for each version. A take is decided by the account of its own version, and charged to the
 * other one, down to empty. Both versions have a queue, so an account can be in debt: work then waits for its start. The first
 * take under a version opens its account, with the missing amount and the debt of the other one. The versions differ only
 * in their unit, as a change of the rate causes it.
 *
 * Left out: sliding windows and logs, more than two versions, different capacities, cancellations.
 *
 * Mirrors: bucket/row.go: StateFor, WithState, charge
 *
 * Checked: G1 of each version: the work that it admits keeps its bound.
 *
 * ADVERSARY_V2: the row has one state, and a take under another version converts it, at most to an empty bucket.
 */

#define CAPACITY 1
#define QUEUE    1
#define RATE     1
#define TICKS    3
#define LEDGER   5 /* TICKS, and the longest wait */
#ifndef TAKERS
#define TAKERS   6
#endif
#define BUCKETS  2 /* a ledger for each version */

#include "bound.pml"

byte spent[2];
bool exists[2]; /* the account */
byte last;      /* the version of the last take */
byte next;      /* the taker that takes next: takers are alike, so their order does not matter */

active proctype clock() {
	do
	:: atomic { now < TICKS - 1 ->
		now++;
		spent[0] = MINUS(spent[0], RATE);
		spent[1] = MINUS(spent[1], RATE);
		if
		:: spent[0] == 0 && spent[1] == 0 -> exists[0] = false; exists[1] = false /* full */
		:: else
		fi;
		printf("tick %d\n", now) }
	:: else -> break
	od
}

active [TAKERS] proctype taker() {
	byte v, begin;

	atomic { next == _pid - 1 ->
		next++;
		if
		:: v = 0
		:: v = 1
		fi;
#ifdef ADVERSARY_V2
		if
		:: v != last -> spent[v] = MIN(spent[last], CAPACITY); last = v
		:: else
		fi;
#else
		if
		:: !exists[v] -> spent[v] = MIN(spent[1 - v], CAPACITY + QUEUE); exists[v] = true
		:: else
		fi;
#endif
		if
		:: spent[v] + 1 <= CAPACITY + QUEUE ->
			spent[v]++;
			begin = now + MINUS(spent[v], CAPACITY) / RATE;
#ifndef ADVERSARY_V2
			spent[1 - v] = (exists[1 - v] -> MAX(spent[1 - v], MIN(spent[1 - v] + 1, CAPACITY)) : spent[1 - v]);
#endif
			printf("version %d admits work that starts at tick %d\n", v, begin);
			start(v, begin, 1)
		:: else -> printf("version %d denies\n", v)
		fi;
		v = 0; begin = 0
	}
}
