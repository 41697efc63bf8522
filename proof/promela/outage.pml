/* SPDX-License-Identifier: Apache-2.0
 *
 * Takes that a limiter decides itself while its store does not answer, and their charge to the store afterwards.
 *
 * One node has callers whose calls can lose the request or the answer. The limiter then takes from a local bucket. It starts
 * with the deficit that the limiter last saw, and with the costs of its other takes in flight. Before the next take of the
 * key, the limiter charges the difference between the local bucket and the same bucket without the local costs. Other callers
 * wait for the charge, or decide locally when they time out. A charge with a lost answer is repeated under its ID. An answer
 * of the store can arrive after other steps. A caller may run its take in a transaction of its own. It then has the
 * lock of the row until it rolls back.
 *
 * Left out: takes of several keys, several nodes and their shares, several versions of a limit, debt limits, sliding limits,
 * refunds, the end of the memory of an ID. An account closes only when a caller returns.
 *
 * Mirrors: internal/outage/fallback.go: Take, openLocal
 * Mirrors: internal/outage/inflight.go: otherCosts, release
 * Mirrors: internal/outage/recovery.go: Recover, settle, charge, due, finishAttempt, closeAccount
 * Mirrors: outage.go: degrade, decideLocally
 * Mirrors: storecalls.go: takeClaims, memoryFor, recoverKeys
 *
 * Checked: G1 after each admission, by the store or locally. COSTS at the end, with RATE 0: the store lacks each admitted token
 * once, except those that are still to be charged, and each take whose answer was lost.
 *
 * SECURITY_3: the charge of local costs is part of the caller's transaction.
 * ADVERSARY_V5: the local bucket starts without the costs of takes in flight.
 * COMMITS: a transaction can commit. The limiter does not remember a take in a transaction, so a later local bucket starts
 *     with too many tokens. This is how the code works: see README.md.
 * REFILLS: takes are in flight for all tokens. The local bucket withholds their costs from its opening on, and they refill before
 *     the store charges them. This is how the code works: see README.md.
 * RECOVERY_FIRST: a take counts as in flight only after it has charged the local costs of its key. Another caller can then
 *     open a local bucket in between, without the cost of this take.
 * WITHOUT_UNHELD: a local decision releases a token although the other takes in flight need all that is withheld. This needs more
 *     takes in flight than tokens.
 * MEMORY_FIRST: a starting local bucket reads the memory before the takes in flight, and misses an answer in between.
 * WITHOUT_ID: a repeated charge has another ID.
 * WITHOUT_CHARGE: local costs are not charged to the store.
 * WITHOUT_MEMORY: a local bucket starts full.
 */

#ifdef REFILLS
#define CAPACITY 1
#endif
#ifndef CAPACITY
#define CAPACITY 2
#endif
#ifndef RATE
#define RATE     1
#endif
#ifndef TICKS
#define TICKS    3
#endif
#define LEDGER   TICKS
#ifndef CALLERS
#define CALLERS  3
#endif
#ifndef FAULTS
#define FAULTS   3
#endif

#include "bound.pml"

byte spent;  /* missing tokens in the store */
byte faults; /* so far */

/* The limiter. */
byte known;         /* the missing tokens in its memory of the store */
byte flying;        /* costs of takes in flight */
bool starting;      /* one caller has the lock of the account, to open a local bucket or to take from it */
bool opened;        /* there is a local bucket, and an account */
byte here, base;   /* missing tokens of the local bucket, with and without local costs */
byte withheld;      /* in base, for takes in flight at the opening */
byte unheld;        /* costs of takes in flight at the opening above the room of the local bucket */
byte localCosts, settledCosts;
bool attempting;    /* a charge may have reached the store */
byte through, attemptCosts; /* the local bucket and localCosts at its start */
bool executed;      /* the store remembers the charge's ID */
bool charging;      /* one caller charges, and the others wait */
byte lost;          /* takes that the store has charged without an answer */
byte admitted;      /* tokens, also those of rolled back transactions that the node has used */
byte ended;
bool locked;        /* a transaction has the lock of the row */
byte begins;        /* local buckets so far */
byte accountNumber; /* of the account: begins at its opening */
bool COSTS = true;

active proctype clock() {
	do
	:: atomic { now < TICKS - 1 ->
		now++;
		spent = MINUS(spent, RATE);
		known = MINUS(known, RATE);
		here = MINUS(here, RATE);
		base = MINUS(base, RATE);
		through = MINUS(through, RATE);
		printf("tick %d: the store lacks %d, the local bucket %d\n", now, spent, here) }
	:: else -> break
	od
}

inline learn() {
	known = MAX(known, spent)
}

/* close ends the account when nothing is due. */
inline close() {
	opened = false; accountNumber = 0; here = 0; base = 0; withheld = 0; unheld = 0; localCosts = 0; settledCosts = 0;
	attempting = false; through = 0; attemptCosts = 0; executed = false
}

active [CALLERS] proctype caller() {
	byte due, mine, before, read; /* mine: tokens in its transaction; before: begins before its take */
	byte saw, sawAt; /* the answer of the store, and its tick */
	bool transaction, owns, allowed, answered, trip; /* owns: its transaction has the lock; trip: its take is in flight */

	if
	:: transaction = true
	:: skip
	fi;
#ifndef RECOVERY_FIRST
	atomic { flying++; trip = true; before = begins };
#endif
	/* Recover charges the local costs first. */
	do
	:: atomic { !opened && !starting -> break }
	:: atomic { opened && charging && faults < FAULTS -> faults++; printf("caller %d waits too long for the charge\n", _pid); goto decideLocally }
	:: atomic { opened && !charging && !starting ->
		if
		:: attempting && MIN(MINUS(through, base), attemptCosts - settledCosts) == 0 -> /* it has refilled */
			base = through; settledCosts = attemptCosts;
			attempting = false; through = 0; attemptCosts = 0; executed = false
		:: else
		fi;
		if
		:: !attempting -> through = here; attemptCosts = localCosts
		:: else
		fi;
		due = MIN(MINUS(through, base), attemptCosts - settledCosts);
#ifdef WITHOUT_CHARGE
		due = 0;
#endif
		if
		:: due == 0 -> close(); break
		:: else -> attempting = true; charging = true
		fi }
		atomic { true -> /* the charge */
			answered = true;
			if
			:: !locked || owns
			:: faults < FAULTS -> faults++; answered = false; printf("the charge of local costs gets no answer\n")
			:: faults < FAULTS -> faults++; charging = false; due = 0; printf("the store does not get the charge of local costs\n"); goto decideLocally
			fi;
			if
#ifndef WITHOUT_ID
			:: executed
#endif
			:: else ->
				spent = spent + due; /* forced */
				executed = true;
#ifdef SECURITY_3
				mine = mine + (transaction -> due : 0);
				owns = transaction; locked = transaction;
#endif
				printf("the store charges %d local costs and lacks %d\n", due, spent)
			fi;
			charging = false;
			if
			:: answered ->
				learn();
				base = through; settledCosts = attemptCosts;
				attempting = false; through = 0; attemptCosts = 0; executed = false;
				due = 0
			:: else -> due = 0; goto decideLocally
			fi
		}
	od;

	/* Take calls the store. */
#ifdef RECOVERY_FIRST
	atomic { flying++; trip = true; before = opened };
#endif
	atomic { true ->
		if
		:: !locked || owns -> /* the store answers */
			allowed = spent < CAPACITY;
			if
			:: allowed -> spent++; printf("the store admits caller %d and lacks %d\n", _pid, spent)
			:: else -> printf("the store denies caller %d\n", _pid)
			fi;
			if
			:: transaction -> mine = mine + allowed; owns = true; locked = true; flying--; trip = false; goto commit
			:: else -> sawAt = now; saw = spent; goto arrive
			fi
		:: faults < FAULTS && !transaction && !locked -> /* the answer is lost */
			faults++;
			if
			:: spent < CAPACITY -> spent++; lost++; printf("the store charges caller %d, but its answer is lost\n", _pid)
			:: else
			fi
		:: faults < FAULTS -> faults++; printf("the take of caller %d does not arrive\n", _pid)
		fi
	};
	goto decideLocally;

arrive:	atomic { true -> /* the answer of the store arrives */
		known = MAX(known, MINUS(saw, (now - sawAt) * RATE));
		if
		:: allowed -> admitted++; start(0, sawAt, 1)
		:: else
		fi;
		sawAt = 0; saw = 0;
		flying--; trip = false;
		goto commit
	};

decideLocally:
	/* An answer can arrive while the local bucket starts. The account is locked. */
	atomic { !starting -> starting = true;
		if
		:: !opened ->
			begins++;
#ifdef MEMORY_FIRST
			read = known
#else
			read = flying - trip
#endif
		:: else
		fi };
	atomic { true -> starting = false;
		if
		:: !opened ->
			opened = true; accountNumber = begins;
#ifdef MEMORY_FIRST
			base = read; read = flying - trip;
#else
			base = known;
#endif
#ifdef WITHOUT_MEMORY
			base = 0;
#endif
#ifdef ADVERSARY_V5
			withheld = 0;
#else
			withheld = MIN(read, MINUS(CAPACITY, base));
#ifndef WITHOUT_UNHELD
			unheld = read - withheld;
#endif
#endif
			read = 0;
			base = base + withheld;
			here = base
		:: opened && trip && before < accountNumber && unheld > 0 -> unheld-- /* the other takes in flight need all that is withheld */
		:: opened && trip && before < accountNumber && unheld == 0 && withheld > 0 -> /* this take is decided here: release its cost */
			withheld--;
			if
			:: base > 0 -> base--; here--; through = (attempting -> MINUS(through, 1) : 0)
			:: else
			fi
		:: else
		fi;
		if
		:: here < CAPACITY ->
			here++; localCosts++; admitted++;
			printf("the limiter admits caller %d and lacks %d\n", _pid, here);
			start(0, now, 1)
		:: else -> printf("the limiter denies caller %d\n", _pid)
		fi;
		flying = flying - trip; trip = false
	};
	transaction = owns; /* a charge of local costs may be in it */

commit:	if
	:: !transaction -> skip
#ifdef COMMITS
	:: atomic { transaction && allowed -> admitted++; start(0, now, 1); locked = false; mine = 0 }
#endif
	:: atomic { transaction ->
		locked = false;
		spent = MINUS(spent, mine);
		printf("the transaction of caller %d is rolled back: the store lacks %d\n", _pid, spent);
		mine = 0 }
	fi;
	atomic { transaction = false; owns = false; allowed = false; answered = false; before = 0; mine = 0; ended++ }
}

#if RATE == 0
active proctype auditor() {
	byte due;
	atomic { ended == CALLERS ->
		due = (opened -> here - (executed -> through : base) : 0);
		printf("the store lacks %d; %d are admitted, %d without an answer, and %d are to be charged\n", spent, admitted, lost, due);
		COSTS = spent + due == admitted + lost;
		assert(COSTS)
	}
}
#endif
