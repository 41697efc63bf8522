/* SPDX-License-Identifier: Apache-2.0
 *
 * The clock and the ledger of promise G1, for the other models. Time is a number of ticks, and a bucket refills RATE tokens
 * per tick. The ledger has the tokens of admitted work by bucket and by the tick of its start. In any interval of t ticks,
 * work of at most CAPACITY + RATE·t tokens starts. That holds exactly if a bucket that only counts, level below, never
 * exceeds CAPACITY.
 */

#ifndef BUCKETS
#define BUCKETS 1
#endif

byte now;                       /* the tick */
byte started[BUCKETS * LEDGER]; /* tokens by the tick of their start */
bool G1 = true;
hidden byte tick, level;

#define MIN(a, b)   ((a) < (b) -> (a) : (b))
#define MAX(a, b)   ((a) > (b) -> (a) : (b))
#define MINUS(a, b) ((a) > (b) -> (a) - (b) : 0)

/* checkBound checks G1 of a bucket. */
inline checkBound(ofBucket) {
	d_step {
		tick = 0; level = 0;
		do
		:: tick < LEDGER ->
			level = MINUS(level, RATE) + started[(ofBucket) * LEDGER + tick];
			G1 = G1 && level <= CAPACITY;
			tick++
		:: else -> break
		od
	}
	assert(G1)
}

/* start records work of tokenCount tokens that starts at a tick. The names of the parameters are long because Spin replaces
 * them in the arguments of the call, too. */
inline start(bucketNumber, startTick, tokenCount) {
	started[(bucketNumber) * LEDGER + (startTick)] = started[(bucketNumber) * LEDGER + (startTick)] + (tokenCount);
	checkBound(bucketNumber)
}

/* unstart records that tokens of work at a tick were not used. */
inline unstart(bucketNumber, startTick, tokenCount) {
	started[(bucketNumber) * LEDGER + (startTick)] = started[(bucketNumber) * LEDGER + (startTick)] - (tokenCount)
}
