/* SPDX-License-Identifier: Apache-2.0
 *
 * Operations on two buckets of the memory store at once.
 *
 * A take marks both slots as busy, without waiting for a slot. If a slot is locked, it releases its marks and takes the locks of
 * both shards. Refunds, and takes that look without charging, always lock both shards in ascending order. A lock waits
 * until the slot is not busy. Each operation changes both buckets or shows both, so they always lack the same amount.
 *
 * Left out: the contents of a word, sizes of tables, slots that move, costs above one token.
 *
 * Mirrors: memstore/take_several.go: takeSeveral, hold, release, commitHolds
 * Mirrors: memstore/take_locked.go: takeLocked
 * Mirrors: memstore/refund.go: refund, openExisting
 *
 * Checked: G2 for each look at both buckets: they lack the same amount. No operation waits for ever.
 *
 * ADVERSARY_V7: a refund locks one bucket after the other.
 * WITHOUT_ORDER: a refund locks the shards in descending order.
 * WITHOUT_MARKS: a take writes the buckets without marks.
 */

#define CAPACITY 2

byte spent[2] = 1;
bool busy[2];   /* a take has marked the slot */
bool locked[2]; /* the shard and its slot */
bool G2 = true;

inline lock(number) {
	atomic { !locked[number] && !busy[number] -> locked[number] = true }
}

active [2] proctype taker() {
	byte i;

#ifndef WITHOUT_MARKS
	/* without locks */
	for (i : 0 .. 1) {
		atomic {
			if
			:: locked[i] ->
				if
				:: i == 1 -> busy[0] = false
				:: else
				fi;
				goto locks
			:: !locked[i] && !busy[i] -> busy[i] = true /* else it spins */
			:: !locked[i] && busy[i] -> /* it has spun long enough */
				if
				:: i == 1 -> busy[0] = false
				:: else
				fi;
				goto locks
			fi
		}
	}
#endif
	if
	:: spent[0] < CAPACITY && spent[1] < CAPACITY ->
		spent[0]++;
		spent[1]++;
		printf("taker %d takes a token from both buckets\n", _pid)
	:: else
	fi;
#ifndef WITHOUT_MARKS
	busy[0] = false;
	busy[1] = false;
	goto end;
locks:
	lock(0);
	lock(1);
	if
	:: spent[0] < CAPACITY && spent[1] < CAPACITY ->
		spent[0]++;
		spent[1]++;
		printf("taker %d takes a token from both buckets, with locks\n", _pid)
	:: else
	fi;
	locked[0] = false;
	locked[1] = false;
end:	skip
#endif
}

active [2] proctype refunder() {
#ifdef ADVERSARY_V7
	lock(0);
	atomic { spent[0] = (spent[0] > 0 -> spent[0] - 1 : 0); locked[0] = false; printf("refunder %d refunds bucket 0\n", _pid) };
	lock(1);
	atomic { spent[1] = (spent[1] > 0 -> spent[1] - 1 : 0); locked[1] = false; printf("refunder %d refunds bucket 1\n", _pid) }
#else
#ifdef WITHOUT_ORDER
	lock(1);
	lock(0);
#else
	lock(0);
	lock(1);
#endif
	spent[0] = (spent[0] > 0 -> spent[0] - 1 : 0);
	spent[1] = (spent[1] > 0 -> spent[1] - 1 : 0);
	printf("refunder %d refunds both buckets\n", _pid);
	locked[0] = false;
	locked[1] = false
#endif
}

active proctype viewer() {
	lock(0);
	lock(1);
	printf("the viewer sees that %d and %d are missing\n", spent[0], spent[1]);
	G2 = spent[0] == spent[1];
	assert(G2);
	locked[0] = false;
	locked[1] = false
}
