/* SPDX-License-Identifier: Apache-2.0
 *
 * Leases: tokens that a store gives to a node in advance.
 *
 * A node borrows tokens of a bucket, spends them without calls, and returns the rest with its next loan. The store charges
 * leased tokens at once, records them as the node's entry, and ends the entry by its own clock. Loans are messages: each can
 * arrive late or never, and can lose its answer. A node whose call has timed out sends its next loan, so two loans of a node
 * can arrive in any order. A node can stop at any step. The store's clock can jump ahead of the nodes' clocks by JUMP
 * ticks, which is the grace. A take of several buckets can return a leased token if another bucket denies. Takers take from the bucket
 * directly.
 *
 * Left out: the sizes that a node chooses (here it chooses any size), costs above one token, resets, several versions of a
 * limit, histories of holds (TestLending_WithHolds in redisstore). A token that cannot return to its lease stays spent;
 * redisstore/leases.go then refunds it in the store.
 *
 * Mirrors: internal/lease/borrower.go: Take, Untake
 * Mirrors: internal/lease/exchange.go: prepareLoan, settle, accept
 * Mirrors: internal/lease/purse.go: spend, unspend, recount
 * Mirrors: redisstore/take_lease.lua: leased, settle, loans
 * Mirrors: redisstore/take_operation.lua: borrow
 *
 * Checked: G1 after each token that a node or a taker spends.
 *
 * WITHOUT_FLOOR: the bucket refills above its capacity minus the leases.
 * WITHOUT_SEQ: the store executes a loan after a later loan of the same node.
 * WITHOUT_SPENT: the store takes back all tokens of an entry, also those that the node has spent.
 * WITHOUT_KEPT: a node keeps its tokens although the store has no entry of them.
 * WITHOUT_REBASE: a node reports tokens of an entry that has ended for the entry after it.
 * WITHOUT_RECOUNT: a token returns to its lease after the node has reported it as spent.
 * WITHOUT_REQUEST_TIME: a node counts the lifetime of its lease from the answer.
 * WITHOUT_GRACE: the store ends an entry after the node's TTL, although its clock can jump.
 */

#ifndef CAPACITY
#define CAPACITY 2
#endif
#define RATE     1
#ifndef TICKS
#define TICKS    5
#endif
#define LEDGER   TICKS
#ifndef NODES
#define NODES    1
#endif
#ifndef LOANS
#define LOANS    3 /* of a node */
#endif
#ifndef TAKERS
#define TAKERS   2
#endif
#ifndef SHARE
#define SHARE    2 /* most tokens of a lease */
#endif
#ifndef JUMP
#define JUMP     0 /* of the store's clock */
#endif
#define TTL      2
#ifdef WITHOUT_GRACE
#define GRACE    0
#else
#define GRACE    JUMP
#endif

#include "bound.pml"

/* The store. */
byte spent;           /* missing tokens, with the leased ones */
byte amount[NODES];   /* of a node's entry; 0 without one */
byte reported[NODES]; /* the node's spent tokens at its last loan */
byte number[NODES];   /* of its last loan */
byte ends[NODES];     /* the tick at which the entry ends */
byte jumped;          /* ticks that the nodes' clocks do not know */

/* The nodes. */
byte purse[NODES];
byte deposited[NODES]; /* total put in the purse, less the tokens set aside */
byte counted[NODES];   /* recounts of the purse */
byte until[NODES];     /* no spending from this tick on, by the node's clock */
byte asked[NODES];     /* the tick of the last loan, by the node's clock */
byte awaited[NODES];   /* number of the loan in flight, or 0 */

#define NODETIME (now + JUMP - jumped)
hidden byte leased, i;

inline sumLeases() {
	leased = 0;
	for (i : 0 .. NODES - 1) {
		leased = leased + amount[i]
	}
	i = 0
}

active proctype clock() {
	do
	:: atomic { now < TICKS - 1 ->
		if
		:: skip
#if JUMP > 0
		:: jumped < JUMP -> jumped++; printf("this tick is a jump of the store's clock\n")
#endif
		fi;
		d_step {
			now++;
			sumLeases();
#ifdef WITHOUT_FLOOR
			leased = 0;
#endif
			spent = MAX(MINUS(spent, RATE), MIN(leased, CAPACITY));
			leased = 0;
			for (i : 0 .. NODES - 1) {
				if
				:: amount[i] > 0 && ends[i] <= now ->
					printf("the lease of node %d ends: %d tokens\n", i, amount[i]);
					amount[i] = 0; reported[i] = 0; ends[i] = 0
				:: else
				fi
			}
			i = 0;
			printf("tick %d: the bucket lacks %d\n", now, spent)
		}
	}
	:: else -> break
	od
}

/* loan is one call of Borrow. */
proctype loan(byte n, seq, used, keep, want) {
	byte back, granted;
	bool kept;

	if
	:: goto unanswered /* it never arrives */
	:: atomic { true; /* it arrives */
#ifndef WITHOUT_SEQ
		if
		:: number[n] >= seq && amount[n] > 0 ->
			printf("the store rejects loan %d of node %d\n", seq, n);
			goto unanswered
		:: else
		fi;
#endif
		kept = amount[n] > 0;
		if
		:: kept ->
#ifdef WITHOUT_SPENT
			back = amount[n];
#else
			back = MINUS(amount[n], used - reported[n]);
#endif
			amount[n] = 0;
			if
			:: keep <= back -> back = back - keep
			:: else -> keep = 0; kept = false /* the entry that the node keeps has ended */
			fi
		:: else -> keep = 0
		fi;
		sumLeases();
		spent = MAX(MINUS(spent, back), MIN(leased + keep, CAPACITY));
		leased = 0;
		granted = MIN(want, CAPACITY - spent);
		spent = spent + granted;
		if
		:: keep + granted > 0 ->
			amount[n] = keep + granted; reported[n] = used; number[n] = seq; ends[n] = now + TTL + GRACE
		:: else -> reported[n] = 0; ends[n] = 0
		fi;
		printf("loan %d of node %d: returns %d, keeps %d, gets %d of %d; the bucket lacks %d\n", seq, n, back, keep, granted, want, spent)
	}
	fi;
	atomic {
		if
		:: awaited[n] == seq ->
			awaited[n] = 0;
			if
#ifndef WITHOUT_KEPT
			:: !kept -> /* the store has no record of the tokens that the node kept */
#ifdef WITHOUT_REBASE
				deposited[n] = deposited[n] - purse[n];
#else
				deposited[n] = used; /* tokens that were spent since were of the entry that has ended */
#endif
				purse[n] = 0;
				counted[n]++
#endif
			:: else
			fi;
#ifdef WITHOUT_REQUEST_TIME
			until[n] = NODETIME + TTL;
#else
			until[n] = asked[n] + TTL;
#endif
			deposited[n] = deposited[n] + granted;
			purse[n] = purse[n] + granted;
			printf("node %d has %d tokens\n", n, purse[n])
		:: else
		fi;
		goto end
	};
unanswered:
	atomic {
		if
		:: awaited[n] == seq -> awaited[n] = 0; printf("node %d gets no answer to loan %d\n", n, seq)
		:: else
		fi
	};
end:	skip
}

active [NODES] proctype node() {
	byte n = _pid - 1, seq, size, keep, used, lotCount;
	bool lot; /* a token that may return */
	byte lotAt;

	do
	:: atomic { awaited[n] == 0 && seq < LOANS -> /* borrow */
		if
		:: size = 0
		:: size = 1
		:: size = SHARE
		fi;
		keep = MIN(purse[n], size);
		used = deposited[n] - purse[n];
		deposited[n] = deposited[n] - (purse[n] - keep);
		purse[n] = keep;
		counted[n]++;
		seq++;
		asked[n] = NODETIME;
		awaited[n] = seq;
		printf("node %d sends loan %d: has spent %d, keeps %d, wants %d\n", n, seq, used, keep, size - keep);
		run loan(n, seq, used, keep, size - keep);
		size = 0; keep = 0; used = 0 }
	:: atomic { awaited[n] != 0 && seq < LOANS -> /* the call times out */
		awaited[n] = 0; printf("node %d gets no answer in time\n", n) }
	:: atomic { purse[n] > 0 && NODETIME < until[n] -> /* spend */
		purse[n]--;
		lot = true; lotCount = counted[n]; lotAt = now;
		printf("node %d spends a token\n", n);
		start(0, now, 1) }
	:: atomic { lot -> /* another bucket denies */
		if
#ifdef WITHOUT_RECOUNT
		:: true ->
#else
		:: lotCount == counted[n] ->
#endif
			purse[n]++;
			unstart(0, lotAt, 1);
			printf("node %d returns the token to its lease\n", n)
		:: else
		fi;
		lot = false; lotCount = 0; lotAt = 0 }
	:: break /* it stops */
	od
}

active [TAKERS] proctype taker() {
end:	atomic { spent < CAPACITY ->
		spent++;
		printf("the bucket admits a taker\n");
		start(0, now, 1)
	}
}
