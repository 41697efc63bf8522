/* SPDX-License-Identifier: Apache-2.0
 *
 * Takes with an ID from a limit with shards, in a Redis Cluster.
 *
 * The shard that pays depends on the contents of all shards, so Redis does not know the ID of a take. A marker does: a bucket
 * in another slot that admits one take. An attempt first looks for the marker. If it finds none, it pays with a shard, and
 * then sets the marker alone. If another attempt has set it in between, the attempt refunds its payment. Two attempts with
 * the ID run at any time. Each call can be lost, or lose its answer.
 *
 * Left out: the choice of shards, undos of several shards (see slots.pml), refill, the end of the marker.
 *
 * Mirrors: internal/shards/shards.go: take, pay
 * Mirrors: internal/shards/marker.go: setMarker, newMarker, decode
 *
 * Checked: G2 after each answer: if an attempt was admitted, the take has been charged. At the end it is charged once, unless
 * an attempt failed.
 *
 * SECURITY_7: an attempt takes from the shard and the marker as parts of one take. If the marker's answer is lost, the take
 *     undoes the shard's part.
 * WITHOUT_REFUND: an attempt keeps its payment when another attempt has set the marker.
 */

#define FAULTS 2

byte faults;    /* so far */
byte charges;   /* of the shards */
bool marked;    /* the marker is set */
bool admitted;  /* an attempt was told so */
bool failed;    /* an attempt was told so */
byte ended;
bool G2 = true;

active [2] proctype attempt() {
	bool found, answered;

	/* It looks for the marker. */
	atomic { true ->
		if
		:: marked -> printf("attempt %d finds the marker\n", _pid); goto allowed
		:: !marked
		:: faults < FAULTS -> faults++; goto fails
		fi
	}
	/* It pays. */
	atomic { true ->
		if
		:: charges++; printf("attempt %d pays\n", _pid)
		:: faults < FAULTS -> faults++; charges++; printf("attempt %d pays, and gets no answer\n", _pid); goto fails
		:: faults < FAULTS -> faults++; goto fails
		fi
	}
	/* It sets the marker. */
	atomic { true ->
		answered = true;
		if
		:: found = marked; marked = true
		:: faults < FAULTS -> faults++; marked = true; answered = false
		:: faults < FAULTS -> faults++; answered = false
		fi;
		printf("attempt %d sets the marker; answered: %d, found: %d\n", _pid, answered, found)
	}
	if
	:: !answered ->
#ifdef SECURITY_7
		charges--; /* the undo of the part before it */
#endif
		goto fails
	:: answered && found ->
#ifndef WITHOUT_REFUND
		atomic { charges--; printf("attempt %d refunds its payment\n", _pid) };
#endif
		goto allowed
	:: else -> goto allowed
	fi;
allowed:
	atomic { true ->
		admitted = true;
		printf("attempt %d is admitted; %d are charged\n", _pid, charges);
		G2 = charges >= 1;
		assert(G2);
		goto end
	};
fails:	failed = true;
end:	atomic { ended++;
		if
		:: ended == 2 ->
			G2 = (!admitted || charges >= 1) && (failed || charges == 1);
			assert(G2)
		:: else
		fi
	}
}
