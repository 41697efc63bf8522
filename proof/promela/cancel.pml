/* SPDX-License-Identifier: Apache-2.0
 *
 * Reservations that are canceled while others stand behind them.
 *
 * A bucket has a capacity and a queue. Clients reserve one or two tokens. While the bucket is in debt, each reservation gets
 * the tick at which its work may start. Each client then keeps its reservation, or returns a part of it or all of it at any
 * later tick: a client that disconnects, or a settlement below the estimate.
 *
 * Left out: histories (see hold.pml), takes that await a settlement, stepped and sliding limits, several versions of a limit.
 *
 * Mirrors: bucket/cancel.go: Cancel, refillBetween
 * Mirrors: bucket/take.go: SpendOwn
 * Mirrors: reservation.go: Settle, Cancel
 *
 * Checked: G1 after each admission and each cancellation.
 *
 * SECURITY_1A: a cancellation returns tokens of a bucket in debt, although later work got its start from them.
 * SECURITY_1B: a cancellation returns tokens that have refilled since the take.
 */

#define CAPACITY 2
#define QUEUE    2
#define RATE     1
#define TICKS    5
#define LEDGER   8 /* TICKS, and the longest wait */
#ifndef CLIENTS
#define CLIENTS  4
#endif

#include "bound.pml"

byte spent; /* the missing tokens; it can exceed CAPACITY by QUEUE */
byte next;  /* the client that reserves next: clients are alike, so their order does not matter */

active proctype clock() {
	do
	:: atomic { now < TICKS - 1 ->
		now++;
		spent = MINUS(spent, RATE);
		printf("tick %d: %d tokens are missing\n", now, spent) }
	:: else -> break
	od
}

active [CLIENTS] proctype client() {
	byte cost, at, missing, begin;

	atomic { next == _pid - 1 ->
		next++;
		if
		:: cost = 1
		:: cost = 2
		fi;
		if
		:: spent + cost <= CAPACITY + QUEUE ->
			spent = spent + cost;
			at = now;
			missing = spent; /* bucket.Taken */
			begin = now + MINUS(spent, CAPACITY) / RATE;
			printf("client %d reserves %d, to start at tick %d\n", _pid, cost, begin);
			start(0, begin, cost)
		:: else -> goto done
		fi
	}
	if
	:: atomic { true ->
		byte amount, refilled, later, back;
		if
		:: amount = cost
		:: cost == 2 -> amount = 1
		fi;
		refilled = (now - at) * RATE;
		back = 0;
		if
		:: spent > CAPACITY -> /* work waits for its start */
			later = spent + refilled - missing; /* costs of later takes */
			if
#ifdef SECURITY_1A
			:: true -> back = amount
#else
			:: amount == cost && later == 0 -> back = amount
			:: else
#endif
			fi
		:: else ->
#ifdef SECURITY_1B
			back = amount
#else
			back = MIN(amount, MINUS(cost, refilled))
#endif
		fi;
		spent = spent - MIN(back, spent);
		printf("client %d cancels %d at tick %d: the bucket gets back %d\n", _pid, amount, now, back);
		unstart(0, begin, amount);
		begin = 0; cost = 0; at = 0; missing = 0; amount = 0; refilled = 0; later = 0; back = 0 }
	:: skip /* it keeps the reservation */
	fi;
done:	skip
}
