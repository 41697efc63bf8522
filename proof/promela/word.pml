/* SPDX-License-Identifier: Apache-2.0
 *
 * A bucket of the memory store in one word, which takes change without locks.
 *
 * The word is a constant while the bucket refills: the missing tokens plus the refill since a base. A take reads the clock and
 * the word, in this order, and writes the word if it is unchanged. A denial is valid only if the word was the same before
 * the clock was read: an earlier clock does not know the refill that another take has found.
 *
 * Left out: busy and locked slots, generations, clocks that step back, costs above one token.
 *
 * Mirrors: memstore/take.go: takeOne
 *
 * Checked: G1 after each admission, which counts at the tick of its clock, within the call. G3: a denied bucket lacked the cost at the time of the clock or of the decision.
 *
 * ADVERSARY_V8: a denial is valid although the word may have changed since the clock was read.
 * WITHOUT_SWAP: a take writes the word although it may have changed.
 */

#define CAPACITY 2
#define RATE     1
#define TICKS    4
#define LEDGER   TICKS
#ifndef TAKERS
#define TAKERS   4
#endif

#include "bound.pml"

byte word;
bool G3 = true;

#define missingAt(time) MINUS(word, (time) * RATE)

active proctype clock() {
	do
	:: atomic { now < TICKS - 1 -> now++; printf("tick %d\n", now) }
	:: else -> break
	od
}

active [TAKERS] proctype taker() {
	byte time, read, before;
	bool had, known; /* the bucket had a token when the clock was read; before is known */

again:	atomic { time = now; had = missingAt(now) < CAPACITY };
decide:	atomic { read = word };
	if
	:: MINUS(read, time * RATE) < CAPACITY -> /* it admits */
		atomic {
			if
#ifndef WITHOUT_SWAP
			:: word != read -> goto decide
#endif
			:: else ->
				word = time * RATE + MINUS(read, time * RATE) + 1;
				printf("taker %d takes a token at tick %d: the word is %d\n", _pid, time, word);
				start(0, time, 1);
				goto end
			fi
		}
	:: else ->
		atomic {
			if
#ifdef ADVERSARY_V8
			:: true ->
#else
			:: known && read == before && word == read ->
#endif
				printf("taker %d is denied by the clock of tick %d\n", _pid, time);
				G3 = !had || missingAt(now) >= CAPACITY;
				assert(G3);
				goto end
			:: else -> before = word; known = true; goto again
			fi
		}
	fi;
end:	atomic { time = 0; read = 0; before = 0; had = false; known = false }
}
