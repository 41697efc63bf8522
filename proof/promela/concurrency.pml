/* SPDX-License-Identifier: Apache-2.0
 *
 * Slots of a concurrency limit: requests take one, renew it and release it.
 *
 * A slot has the ID of its request and ends LEASE ticks after its last take or renewal, by the clock of the store. Each client
 * takes a slot under an ID. If it gets no answer, it repeats the take or gives up and releases. A keeper renews the slot while
 * the client works. If the slot has ended, the keeper takes it again, and releases it if the client has released in between.
 * The client releases at the end, and may repeat a release without an answer. Each call can be lost, lose its answer or be
 * executed late. All calls together have FAULTS such faults.
 *
 * Left out: several keys in one call, holds with slots, limits in shadow, local slots in an outage, changed limits, a clock of
 * the store that steps back, the end of the memory of an ID.
 *
 * Mirrors: bucket/slots.go: Take, Renew, Release, put
 * Mirrors: memstore/slots.go: takeSlots, holdsSlots
 * Mirrors: redisstore/take_slots.lua: slots.holds, slots.held, slots.wait, slots.put
 * Mirrors: slots.go: keepAlive, takeAgain, takeEach, Release, dropSlots
 *
 * Checked: G13 after each call: at most MOST slots have not ended. A request with an answer holds its slot when the store
 * decides, and keeps it until the end in the answer, unless it releases the slot. FREE at the end: without faults, no client
 * has left a slot.
 *
 * WITHOUT_LIVE: a renewal gives a new lease to a slot that has ended.
 * WITHOUT_STEP: the store counts the slots and adds one in two steps.
 * WITHOUT_NAMES: a release frees any slot, as in a semaphore that only counts.
 * WITHOUT_CHECK: a repeated take gets its first answer, although its slot has ended.
 * WITHOUT_AGAIN: the keeper does not release a slot that it has taken again after the end of the client.
 */

#ifndef MOST
#define MOST     1
#endif
#ifndef CLIENTS
#define CLIENTS  2
#endif
#ifndef TICKS
#define TICKS    4
#endif
#ifndef FAULTS
#define FAULTS   1
#endif
#ifndef RENEWALS
#define RENEWALS 1 /* of a client */
#endif
#define LEASE    2

#define MAX(a, b) ((a) > (b) -> (a) : (b))

byte now;
byte faults;           /* so far */
byte end[CLIENTS];     /* of a slot; the store has it until then, and 0 is none */
bool admitted[CLIENTS]; /* the store remembers that it has admitted the take */
byte sure[CLIENTS];    /* the client knows that it has its slot until then */
bool done[CLIENTS];    /* the client releases */
bool released[CLIENTS];
bool releasing[CLIENTS];
byte ended;            /* clients and keepers */
byte flying;           /* late calls */
bool G13 = true;
bool FREE = true;

hidden byte i, held;

mtype = { yes, no, unanswered, refused };

inline count() {
	held = 0;
	for (i : 0 .. CLIENTS - 1) {
		held = held + (end[i] > now -> 1 : 0)
	}
	i = 0
}

inline check() {
	d_step {
		count();
		G13 = G13 && held <= MOST;
		for (i : 0 .. CLIENTS - 1) {
			G13 = G13 && (sure[i] <= now || end[i] >= sure[i])
		}
		i = 0; held = 0
	}
	assert(G13)
}

active proctype clock() {
	do
	:: atomic { now < TICKS - 1 -> now++; printf("tick %d\n", now) }
	:: else -> break
	od
}

/* REPEATED: the store remembers its answer to the take, and the slot has not ended. */
#ifdef WITHOUT_CHECK
#define REPEATED(c) (admitted[c])
#else
#define REPEATED(c) (admitted[c] && end[c] > now)
#endif

/* The store runs each call in one step. A take with an ID repeats its answer, and takeAgain has no ID. */

inline takeAgain(c, answer) {
	count();
	if
	:: end[c] > now || held < MOST -> end[c] = now + LEASE; answer = yes; printf("client %d has a slot until tick %d\n", c, end[c])
	:: else -> answer = no; printf("the store denies client %d\n", c)
	fi;
	G13 = G13 && (answer != yes || end[c] > now);
	check()
}

inline take(c, answer) {
	if
	:: REPEATED(c) ->
		answer = yes; printf("the store repeats its answer to client %d\n", c);
		G13 = G13 && end[c] > now;
		assert(G13)
	:: else -> takeAgain(c, answer); admitted[c] = admitted[c] || answer == yes
	fi
}

inline renew(c, answer) {
	if
#ifdef WITHOUT_LIVE
	:: end[c] > 0 ->
#else
	:: end[c] > now ->
#endif
		end[c] = now + LEASE; answer = yes; printf("client %d renews its slot until tick %d\n", c, end[c])
	:: else -> answer = no; printf("the slot of client %d has ended\n", c)
	fi;
	check()
}

inline release(c, answer) {
#ifdef WITHOUT_NAMES
	count();
	i = c;
	do
	:: end[i] <= now && held > 0 -> i = (i + 1) % CLIENTS
	:: else -> break
	od;
	end[i] = 0; i = 0;
#else
	end[c] = 0;
#endif
	answer = yes; printf("client %d releases its slot\n", c);
	check()
}

#define TAKE    0
#define AGAIN   1
#define RENEW   2
#define RELEASE 3

/* fail loses a call, or executes it late. */
inline fail(kind, c, answer) {
	faults++;
	if
	:: answer = refused; printf("a call of client %d is lost\n", c)
	:: answer = unanswered; printf("a call of client %d is late\n", c); flying++; run straggler(kind, c)
	fi
}

#define ANSWERED(c) sure[c] = (answer == yes && !done[c] -> end[c] : sure[c])
#define CALL(operation, kind, c) atomic { if :: true -> operation(c, answer); ANSWERED(c) :: faults < FAULTS -> faults++; operation(c, answer); answer = unanswered :: faults < FAULTS -> fail(kind, c, answer) fi }

/* straggler executes a late call. */
proctype straggler(byte kind, c) {
	mtype answer;
	atomic {
		if
		:: kind == TAKE -> take(c, answer)
		:: kind == AGAIN -> takeAgain(c, answer)
		:: kind == RENEW -> renew(c, answer)
		:: kind == RELEASE -> release(c, answer)
		fi;
		flying--
	}
}

/* keeper renews the slot of a client. */
proctype keeper(byte c) {
	byte renewals;
	mtype answer;

	do
	:: atomic { !done[c] && renewals < RENEWALS -> renewals++ };
		CALL(renew, RENEW, c);
		if
		:: atomic { answer == no && !releasing[c] && !released[c] -> answer = 0 }; /* takeAgain waits while a release runs */
			CALL(takeAgain, AGAIN, c);
			atomic { !releasing[c] -> answer = 0 };
#ifndef WITHOUT_AGAIN
			if
			:: released[c] -> CALL(release, RELEASE, c)
			:: else
			fi
#endif
		:: atomic { answer == no && released[c] -> break }
		:: atomic { answer != no -> answer = 0 }
		fi
	:: atomic { done[c] || renewals == RENEWALS -> break }
	od;
	atomic { renewals = 0; answer = 0; ended++ }
}

active [CLIENTS] proctype client() {
	byte c = _pid - 1;
	mtype answer;

again:
#ifdef WITHOUT_STEP
	atomic { count(); answer = (held < MOST -> yes : no); held = 0 };
	atomic {
		if
		:: answer == yes -> end[c] = now + LEASE; check()
		:: else
		fi
	};
#else
	CALL(take, TAKE, c);
#endif
	atomic {
		if
		:: answer == no -> ended++; goto over
		:: answer == yes -> run keeper(c)
		:: answer == unanswered || answer == refused -> answer = 0; goto again /* it repeats the take */
		:: answer == unanswered || answer == refused -> ended++ /* it gives up */
		fi;
		answer = 0
	};
	atomic { sure[c] = 0; done[c] = true; releasing[c] = true; printf("client %d is done\n", c) };
	do
	:: CALL(release, RELEASE, c);
		atomic {
			if
			:: answer == yes -> releasing[c] = false; released[c] = true; break
			:: answer != yes -> answer = 0
			:: answer != yes -> releasing[c] = false; break /* it does not repeat the release */
			fi
		}
	od;
over:	atomic { answer = 0; ended++ }
}

active proctype auditor() {
	atomic { ended == 2 * CLIENTS && flying == 0 ->
		count();
		FREE = faults > 0 || held == 0;
		held = 0;
		assert(FREE)
	}
}
