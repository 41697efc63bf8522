/* SPDX-License-Identifier: Apache-2.0
 *
 * Holds and reservations: takes of an estimate that a settlement corrects later.
 *
 * Each client holds one or two tokens. It settles the hold with another amount, renews it, or leaves it. An expired hold keeps
 * its charge or is refunded. A call can be lost, or lose its answer. The client then repeats it, maybe with another amount, from another
 * process. A client can have a reservation instead, whose settlement consists of two calls: a refund is not repeated
 * after a lost answer, and a charge of the excess is repeated with its ID. The bucket keeps a history of its minima while it
 * has holds, so that a refund returns no tokens that have refilled. Takers use the same bucket.
 *
 * A store refunds expired holds before the next operation of their bucket, as of their expiry, and keeps the history until then.
 * The model refunds them at once, and keeps the history while a hold is to be refunded.
 *
 * Left out: several buckets (a hold over several slots is undone as in slots.pml), takes that await a settlement, resets,
 * renewals of reservations, work that waits for its start (see cancel.pml) and its amounts in the history (Epoch.Later and
 * noteWait), the end of a record, epochs that are joined or removed.
 *
 * Mirrors: bucket/cancel.go: Cancel
 * Mirrors: bucket/history.go: needsHistory, note, refunded, refundsSince, spendHeld, withdraw, begin, extend
 * Mirrors: bucket/row_hold.go: WithHold, WithSettlement, WithRenewal
 * Mirrors: memstore/hold.go: Hold, Settle, Renew
 * Mirrors: redisstore/take_hold.lua: refundDue, settleHold, renewHold
 * Mirrors: steps.go: chargeStep, repeatStep
 *
 * Checked: G1 after each admission. A charge of an excess is no admission: it occurs anyway. ONCE at the end, with RATE 0: the
 * bucket lacks the settled amounts, the kept estimates and the takers' tokens. It also lacks the part of refunds that
 * stays because the bucket is in debt.
 *
 * SECURITY_1B: a settlement returns tokens that have refilled since the hold.
 * WITHOUT_STATE: a repeated settlement is executed again.
 * WITHOUT_OVER: a settlement of an expired hold is executed, although its refund was.
 * WITHOUT_STEP: a repeated charge of an excess has another ID.
 * WITHOUT_NOTES: a take does not note the missing amount in the history.
 */

#define CAPACITY 2
#ifndef RATE
#define RATE     1
#endif
#ifndef TICKS
#define TICKS    4
#endif
#define LEDGER   TICKS
#ifndef HOLDS
#define HOLDS    2
#endif
#ifndef TAKERS
#define TAKERS   1
#endif
#define TTL      2

#include "bound.pml"

byte spent; /* missing tokens */

/* The history, by the tick of an epoch's start. */
bool history;
bool epoch[TICKS];
byte least[TICKS];
byte refunds[TICKS];
byte until;
hidden byte lowered[TICKS];

/* The holds. */
mtype = { none, open, settled, expired };
mtype state[HOLDS] = none;
bool held[HOLDS];    /* it is a hold, and no reservation */
bool refunded[HOLDS]; /* its expiry refunds it */
byte cost[HOLDS], taken[HOLDS], missing[HOLDS], expires[HOLDS], actual[HOLDS];
bool charged[HOLDS]; /* the excess of a reservation, under its ID */
byte takers;         /* admitted */
byte next;           /* the client that takes next */
byte ended;          /* clients */
byte kept;           /* tokens of refunds that did not return */
bool ONCE = true;

hidden byte e, lastEpoch, firstEpoch, rest, own, low, stop, refilled;
hidden short back, later;
hidden byte due;       /* a hold is to be refunded at its expiry */
hidden byte refunding; /* the client of the hold that the clock refunds, plus 1 */

#define NONE 255

inline findEpochs() {
	lastEpoch = NONE; firstEpoch = NONE;
	for (e : 0 .. TICKS - 1) {
		if
		:: epoch[e] ->
			lastEpoch = e;
			firstEpoch = (firstEpoch == NONE -> e : firstEpoch)
		:: else
		fi
	}
}

/* keepHistory drops the history when it is not needed. A hold needs it until its expiry, or until its refund at expiry. */
inline keepHistory() {
	due = 0;
	for (e : 0 .. HOLDS - 1) {
		due = due || refunded[e] && held[e] && (state[e] == open || refunding == e + 1)
	}
	if
	:: history && now >= until && spent <= CAPACITY && due == 0 ->
		history = false; until = 0;
		for (e : 0 .. TICKS - 1) {
			epoch[e] = false; least[e] = 0; refunds[e] = 0
		}
	:: else
	fi
}

inline noteMinimum(amount) {
	findEpochs();
	least[lastEpoch] = MIN(least[lastEpoch], amount)
}

inline spend(tokens) {
	if
#ifndef WITHOUT_NOTES
	:: history -> noteMinimum(spent)
#endif
	:: else
	fi;
	spent = spent + tokens
}

/* openHistory records a hold of h in the history. */
inline openHistory(ho) {
	history = true;
	until = MAX(until, expires[ho]);
	least[now] = (epoch[now] -> MIN(least[now], spent) : spent);
	epoch[now] = true
}

/* withdraw computes the part of asked that the bucket would have without the take of h. */
inline withdraw(hw, wanted) {
	rest = MINUS(cost[hw], refilled);
	own = MIN(wanted, rest);
	back = wanted;
	/* the epoch of the take */
	stop = firstEpoch;
	for (e : 0 .. TICKS - 1) {
		if
		:: epoch[e] && e <= taken[hw] -> stop = e
		:: else
		fi
	}
	firstEpoch = stop;
	for (e : firstEpoch .. TICKS - 1) {
		if
		:: epoch[e] ->
			low = least[e];
			stop = e + 1;
			do
			:: stop < TICKS && !epoch[stop] -> stop++
			:: else -> break
			od;
			if
			:: e == lastEpoch -> low = MIN(low, spent); stop = now
			:: else
			fi;
			lowered[e] = MINUS(low, back);
			if
			:: e == firstEpoch && e <= taken[hw] -> low = MAX(low, MINUS(cost[hw], (stop - taken[hw]) * RATE))
			:: else
			fi;
			back = MAX(MIN(back, low), own)
		:: else
		fi
	}
	if
	:: firstEpoch > taken[hw] -> back = MIN(back, rest)
	:: else
	fi
}

/* cancel refunds asked tokens of the take of h. */
inline cancel(hc, asked) {
	d_step {
		keepHistory();
		refilled = (now - taken[hc]) * RATE;
		later = spent - missing[hc] + refilled;
		back = 0;
		if
		:: asked == 0 || spent == 0
#ifdef SECURITY_1B
		:: asked > 0 && spent > 0 -> back = asked
#else
		:: asked > 0 && spent > 0 && !history ->
			if
			:: spent > CAPACITY -> back = (asked == cost[hc] && later == 0 -> asked : 0)
			:: else -> back = MIN(asked, MINUS(cost[hc], refilled))
			fi
		:: asked > 0 && spent > 0 && history ->
			findEpochs();
			if
			:: spent > CAPACITY && firstEpoch > taken[hc] -> back = (asked == cost[hc] && later == 0 -> asked : 0)
			:: spent > CAPACITY && firstEpoch <= taken[hc] ->
				/* refunds since the start of the epoch of the take */
				stop = firstEpoch;
				for (e : 0 .. taken[hc]) {
					stop = (epoch[e] -> e : stop)
				}
				for (e : stop .. TICKS - 1) {
					later = later + refunds[e]
				}
				rest = MAX(asked - MAX(later, 0), 0);
				later = rest;
				withdraw(hc, asked);
				back = MAX(back, later)
			:: else -> withdraw(hc, asked)
			fi
#endif
		fi;
		back = MIN(back, spent);
		if
		:: back > 0 ->
			spent = spent - back;
			if
			:: history ->
				findEpochs();
				stop = firstEpoch;
				for (e : 0 .. taken[hc]) {
					stop = (epoch[e] -> e : stop)
				}
				for (e : stop .. TICKS - 1) {
					least[e] = (epoch[e] -> lowered[e] : 0)
				}
				least[lastEpoch] = MIN(least[lastEpoch], spent);
				refunds[lastEpoch] = refunds[lastEpoch] + back
			:: else
			fi
		:: else
		fi;
#if RATE == 0
		kept = kept + asked - back;
#endif
		printf("the bucket gets back %d of %d and lacks %d\n", back, asked, spent);
		for (e : 0 .. TICKS - 1) {
			lowered[e] = 0
		}
	}
}

active proctype clock() {
	byte h;
	do
	:: atomic { now < TICKS - 1 ->
		now++;
		spent = MINUS(spent, RATE);
		printf("tick %d: the bucket lacks %d\n", now, spent);
		for (h : 0 .. HOLDS - 1) {
			if
			:: state[h] == open && held[h] && expires[h] == now ->
				state[h] = expired;
				printf("the hold of client %d expires\n", h);
				if
				:: refunded[h] ->
					unstart(0, taken[h], cost[h]);
					refunding = h + 1;
					cancel(h, cost[h]);
					refunding = 0
				:: else
				fi
			:: else
			fi
		}
		h = 0 }
	:: else -> break
	od
}

/* settleHold runs a settlement of h with an amount. */
inline settleHold(hs, used) {
	if
#ifdef WITHOUT_STATE
	:: state[hs] != expired ->
#else
#ifdef WITHOUT_OVER
	:: state[hs] == open || state[hs] == expired ->
#else
	:: state[hs] == open ->
#endif
#endif
		printf("client %d settles %d with %d\n", hs, cost[hs], used);
		if
		:: state[hs] == open && used < cost[hs] -> unstart(0, taken[hs], cost[hs] - used)
		:: else
		fi;
		if
		:: used > cost[hs] -> spend(used - cost[hs])
		:: else -> cancel(hs, cost[hs] - used)
		fi;
		if
		:: state[hs] == expired /* WITHOUT_OVER */
		:: else -> state[hs] = settled; actual[hs] = used
		fi
	:: else -> printf("client %d learns that its hold has ended\n", hs)
	fi
}

/* chargeExcess runs the first charge of the excess of the reservation h, under its ID. */
inline chargeExcess(hx, excess) {
	charged[hx] = true;
	keepHistory();
	spend(excess);
	printf("client %d owes %d more\n", hx, excess)
}

active [HOLDS] proctype client() {
	byte h = _pid - 1, amount;

	atomic { next == h ->
		next++;
		if
		:: cost[h] = 1
		:: cost[h] = 2
		fi;
		if
		:: held[h] = true; refunded[h] = true
		:: held[h] = true
		:: skip
		fi;
		if
		:: spent + cost[h] <= CAPACITY ->
			keepHistory();
			spend(cost[h]);
			taken[h] = now; missing[h] = spent; expires[h] = now + TTL; state[h] = open;
			printf("client %d takes %d, and holds it: %d\n", h, cost[h], held[h]);
			start(0, now, cost[h]);
			if
			:: held[h] -> openHistory(h)
			:: else
			fi
		:: else -> goto end
		fi
	}
	if
	:: goto end /* it keeps the estimate */
	:: atomic { held[h] && state[h] == open -> /* it renews */
		expires[h] = now + TTL;
		until = MAX(until, expires[h]);
		printf("client %d renews its hold\n", h) }
	:: skip
	fi;
	atomic {
		if
		:: amount = 0
		:: amount = 1
		:: amount = cost[h] + 1
		fi;
		if
		:: goto again /* the call is lost */
		:: true ->
			if
			:: held[h] -> settleHold(h, amount)
			:: !held[h] && amount <= cost[h] ->
				unstart(0, taken[h], cost[h] - amount);
				state[h] = settled; actual[h] = amount;
				printf("client %d settles %d with %d\n", h, cost[h], amount);
				cancel(h, cost[h] - amount)
			:: else ->
				state[h] = settled; actual[h] = amount;
				chargeExcess(h, amount - cost[h])
			fi
		fi
	}
	if
	:: goto end
	:: skip /* it got no answer */
	fi;
again:	atomic { true ->
		if
		:: held[h] ->
			if
			:: skip
			:: amount != 0 -> amount = 0
			:: amount != cost[h] + 1 -> amount = cost[h] + 1
			fi;
			settleHold(h, amount)
		:: !held[h] && amount > cost[h] ->
			state[h] = settled; actual[h] = amount;
			if
#ifndef WITHOUT_STEP
			:: charged[h] -> printf("the store repeats its answer to client %d\n", h)
#endif
			:: else -> chargeExcess(h, amount - cost[h])
			fi
		:: else -> skip /* a refund is not repeated */
		fi
	}
end:	atomic {
		ended++;
		amount = 0;
		if
		:: state[h] == settled || !held[h] -> missing[h] = 0; expires[h] = 0; charged[h] = 0; held[h] = false
		:: else
		fi
	}
}

active [TAKERS] proctype taker() {
	if
	:: atomic { spent < CAPACITY ->
		keepHistory();
		spend(1);
		takers++;
		printf("the bucket admits a taker\n");
		start(0, now, 1) }
	:: skip
	fi
}

/* ONCE: without refill, the bucket lacks what was used. */
#if RATE == 0
active proctype auditor() {
	byte h, used;
	atomic { ended == HOLDS && now == TICKS - 1 ->
		used = takers;
		for (h : 0 .. HOLDS - 1) {
			if
			:: state[h] == settled -> used = used + actual[h]
			:: state[h] == open || state[h] == expired && !refunded[h] -> used = used + cost[h]
			:: else
			fi
		}
		ONCE = spent == used + kept;
		printf("the bucket lacks %d, and %d are used\n", spent, used);
		assert(ONCE)
	}
}
#endif
