/* SPDX-License-Identifier: Apache-2.0
 *
 * Takes and refunds over two slots of a Redis Cluster.
 *
 * Buckets 0 and 1 are in different slots. The client takes a token from both: it charges bucket 0 first and then bucket 1, each
 * with one script call. If bucket 1 denies or fails, it undoes the charge of bucket 0, and repeats the undo until Redis confirms
 * it. The client may use an ID. After an error it then retries with the same ID, while undos of the first attempt are still
 * pending. The client may cancel its take, over both slots. The first slot decides: if it certainly refunded nothing, the
 * client calls again. Takers use one bucket each, and stand for all other clients.
 *
 * A call can lose its request, its answer, or be executed late. All calls together have FAULTS such faults.
 *
 * Left out: takes that await a settlement and take_settle.lua, more than two slots, costs above one token, logs, leases, slots
 * that move, a Redis that loses data. The memory of an ID and the marker of an undo do not expire, and no undo is abandoned.
 *
 * Mirrors: redisstore/parts.go: takeInParts, undo
 * Mirrors: redisstore/undo.go: begin, run, submitOnce
 * Mirrors: redisstore/refund.go: Refund, refundParts
 * Mirrors: redisstore/take_operation.lua: take, giveback, disown
 * Mirrors: redisstore/take_history.lua: cancel
 *
 * Checked: G1 of both buckets after each admission. G2 at the end: an admitted take is charged once to each bucket, and a
 * denied, failed or canceled one to none. A charge with a lost answer may stay, but not twice.
 *
 * SECURITY_2: a refund over both slots returns the error of each slot as it is, so that the caller repeats all of it.
 * SECURITY_6: an undo returns tokens that have refilled since the take.
 * WITHOUT_MARKER: a repeated undo does not find that it has already been executed.
 * WITHOUT_OWNERS: the undo of an attempt ignores that another attempt with the ID has the same charge.
 * WITHOUT_UNDO: a denied take leaves bucket 0 charged.
 */

#define CAPACITY 1
#define RATE     1
#define BUCKETS  2
#define TICKS    3
#define LEDGER   TICKS
#ifndef TAKERS
#define TAKERS   2
#endif
#ifndef FAULTS
#define FAULTS   2
#endif

#include "bound.pml"

byte spent[BUCKETS];
byte faults;            /* so far */
byte owners[BUCKETS];   /* attempts that own the remembered charge of a part, as bits */
byte takenAt[BUCKETS];  /* the tick of this charge */
byte charges[BUCKETS];  /* of a part that no refund has returned */
byte pending[BUCKETS];  /* undos of a part: bits 0 and 1 for the attempts with an ID, 2 without an ID, and 3 for a cancellation */
byte marked[BUCKETS];   /* executed undos, as the same bits */
bool named;             /* the client uses an ID */
bool over;              /* the client makes no more calls */
bool strays;            /* a charge may stay because its answer was lost */
bool G2 = true;

active proctype clock() {
	do
	:: atomic { now < TICKS - 1 ->
		now++;
		spent[0] = MINUS(spent[0], RATE);
		spent[1] = MINUS(spent[1], RATE);
		printf("tick %d\n", now) }
	:: else -> break
	od
}

/* giveBack returns the charge of a part. */
inline giveBack(b) {
	atomic {
		if
		:: charges[b] > 0 ->
			charges[b]--;
			unstart(b, takenAt[b], 1)
		:: else
		fi;
		if
#ifdef SECURITY_6
		:: spent[b] > 0 -> spent[b]--
#else
		:: spent[b] > 0 && MINUS(1, (now - takenAt[b]) * RATE) > 0 -> spent[b]-- /* it has not refilled */
#endif
		:: else
		fi;
		printf("bucket %d takes back the token of the client and lacks %d\n", b, spent[b])
	}
}

/* execute runs the script of a take of a part, for an attempt. */
inline execute(b, attempt, admits) {
	if
	:: named && owners[b] != 0 ->
		owners[b] = owners[b] | (1 << attempt);
		admits = true;
		printf("bucket %d repeats its answer to the client\n", b)
	:: else ->
		admits = spent[b] < CAPACITY;
		if
		:: admits ->
			spent[b]++;
			owners[b] = (named -> 1 << attempt : 0);
			takenAt[b] = now;
			charges[b]++;
			printf("bucket %d charges the client\n", b);
			G2 = G2 && charges[b] <= 1;
			assert(G2);
			start(b, now, 1)
		:: else -> printf("bucket %d denies the client\n", b)
		fi
	fi
}

#define undoLater(b, mark) pending[b] = pending[b] | (1 << (mark))

mtype = { answered, refused, unanswered };

active proctype client() {
	byte attempt, part;
	bool admits, admitted, late;
	mtype result;

	if
	:: named = true
	:: skip
	fi;
again:	part = 0;
	do
	:: part < 2 ->
		atomic {
			if
			:: true -> execute(part, attempt, admits); result = answered
			:: faults < FAULTS -> faults++; execute(part, attempt, admits); result = unanswered;
				printf("the client gets no answer\n")
			:: faults < FAULTS -> faults++; result = refused; printf("the client does not reach bucket %d\n", part)
			:: faults < FAULTS && !late -> faults++; result = unanswered; late = true;
				printf("the client waits in vain for bucket %d\n", part);
				run straggler(part, attempt)
			fi;
			if
			:: result == unanswered && named -> undoLater(part, attempt) /* Redis knows whether the attempt made it */
			:: result == unanswered && !named -> strays = true
			:: else
			fi;
			if
			:: result == unanswered && late -> strays = true /* the take may follow its undo */
			:: else
			fi;
			if
			:: result == answered && admits -> part++
			:: else ->
				if
#ifndef WITHOUT_UNDO
				:: part == 1 && named -> undoLater(0, attempt)
				:: part == 1 && !named -> undoLater(0, 2)
#endif
				:: else
				fi;
				break
			fi
		}
	:: else -> admitted = true; break
	od;
	if
	:: !admitted && result != answered && named && attempt == 0 ->
		atomic { attempt = 1; printf("the client retries with its ID\n") };
		goto again
	:: admitted -> skip      /* it cancels */
	:: else -> goto end
	fi;
cancel:	atomic { /* bucket 0 */
		printf("the client cancels its take\n");
		if
		:: true -> giveBack(0); result = answered
		:: faults < FAULTS -> faults++; result = refused; printf("the client does not reach bucket 0\n")
#ifndef SECURITY_2
		:: faults < FAULTS -> faults++; giveBack(0); marked[0] = marked[0] | 8; result = unanswered
		:: faults < FAULTS -> faults++; result = unanswered
#endif
		fi
	};
	if
	:: result == refused -> goto cancel /* nothing has changed */
	:: else
	fi;
	atomic {
#ifdef SECURITY_2
		if
		:: true -> giveBack(1)
		:: faults < FAULTS -> faults++; printf("the client does not reach bucket 1\n"); goto cancel
		fi
#else
		if
		:: result == unanswered -> undoLater(0, 3)
		:: else
		fi;
		undoLater(1, 3);
		admitted = false
#endif
	};
#ifdef SECURITY_2
	admitted = false;
#endif
end:	over = true;
	pending[0] == 0 && pending[1] == 0; /* wait until the undos are confirmed */
	G2 = G2 && (!admitted || charges[0] == 1 && charges[1] == 1);
	G2 = G2 && (admitted || strays || charges[0] == 0 && charges[1] == 0);
	assert(G2)
}

/* straggler executes a take that arrives late, or never. */
proctype straggler(byte b, attempt) {
	bool admits;
	if
	:: atomic { true -> execute(b, attempt, admits) }
	:: skip
	fi
}

inline executeUndo(b, mark) {
	if
	:: mark < 2 -> /* an attempt with the ID */
		if
		:: owners[b] & (1 << mark) ->
#ifdef WITHOUT_OWNERS
			owners[b] = 0;
#else
			owners[b] = owners[b] & ~(1 << mark);
#endif
			if
			:: owners[b] == 0 -> giveBack(b)
			:: else
			fi
		:: else
		fi
	:: else ->
		if
#ifndef WITHOUT_MARKER
		:: marked[b] & (1 << mark)
#endif
		:: else ->
			marked[b] = marked[b] | (1 << mark);
			giveBack(b)
		fi
	fi
}

/* undoer executes the pending undos. */
active proctype undoer() {
	byte b, mark;
	do
	:: atomic { pending[0] != 0 || pending[1] != 0 ->
		if
		:: pending[0] != 0 -> b = 0
		:: pending[1] != 0 -> b = 1
		fi;
		if
		:: pending[b] & 1 -> mark = 0
		:: pending[b] & 2 -> mark = 1
		:: pending[b] & 4 -> mark = 2
		:: pending[b] & 8 -> mark = 3
		fi;
		executeUndo(b, mark);
		if
		:: true -> pending[b] = pending[b] & ~(1 << mark)
		:: faults < FAULTS -> faults++; printf("the undo for the client gets no answer\n")
		fi;
		b = 0; mark = 0 }
	:: over && pending[0] == 0 && pending[1] == 0 -> break
	od
}

active [TAKERS] proctype taker() {
	byte b;
	atomic {
		if
		:: b = 0
		:: b = 1
		fi;
		if
		:: spent[b] < CAPACITY ->
			spent[b]++;
			printf("bucket %d admits another taker\n", b);
			start(b, now, 1)
		:: else
		fi
	}
}
