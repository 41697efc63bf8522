// SPDX-License-Identifier: Apache-2.0

import {stream} from '../shell/api.js';
import {limitOf} from './level.js';

// lookOf is a bucket as a Level notes it, at a time of the server's clock.
export function lookOf(b, t) {
	return {t, level: levelOf(b), limit: limitOf(b), fullAfter: b.full_after, retryAfter: b.retry_after};
}

// followBucket watches one bucket, which was last seen at since, if at all. onBucket(bucket, look) is told of it twice a second,
// onDecision(decision) of each decision, onDropped(count) of those that were too many,
// onTrouble(text) why there is no bucket at the moment, '' when there is again, and
// onState as a stream's. Times are seconds of the server's clock, which now() shows;
// heard() is the last one that came.
export function followBucket(key, since, {onBucket, onDecision, onDropped, onTrouble, onState}) {
	let ahead = null; // this machine's clock, of the server's
	let anew = true; // the clocks may have been set meanwhile
	let heard = null;
	let limit = null;
	const at = (t) => {
		const seen = Date.now() / 1000 - t;
		ahead = anew ? seen : Math.min(ahead, seen); // the least delay is nearest to the truth
		anew = false;
		heard = Math.max(heard ?? t, t);
		return t;
	};
	if (Number.isFinite(since)) at(since);
	const events = {
		bucket(b) {
			limit = limitOf(b);
			onTrouble('');
			onBucket(b, lookOf(b, at(b.at)));
		},
		decisions({list, dropped}) {
			for (const d of limit ? list : []) {
				at(d[0]);
				onDecision(decisionOf(d, limit));
			}
			if (dropped > 0) {
				onDropped(dropped);
			}
		},
		trouble({detail}) {
			onTrouble(detail);
		},
	};
	const feed = stream(`data/watch?${new URLSearchParams({key})}`, {onEvent: (name, data) => events[name]?.(data), onState: (state, problem) => {
		anew ||= state === 'live'; // till then the old one is better than none
		onState(state, problem);
	}});
	return {
		now: () => Date.now() / 1000 - (ahead ?? 0),
		heard: () => heard,
		close: () => feed.close(),
	};
}

// levelOf is what a bucket holds: below 0 where it owes. What waits in a queue is
// within the capacity, and not owed.
function levelOf(b) {
	return b.queue === 0 && b.owed > 0 ? -b.owed : b.remaining;
}

// decisionOf reads [at, allowed, cost, remaining, retry_after, wait, shadow, degraded].
function decisionOf([t, allowed, cost, remaining, retry, wait, shadow, degraded], limit) {
	let kind = 'allowed';
	if (!allowed) {
		kind = shadow ? 'shadow' : retry === 0 ? 'elsewhere' : 'denied';
	}
	return {
		t, limit, kind, cost, left: remaining, degraded: degraded === 1,
		level: degraded ? null : remaining, // what a local bucket holds is not the store's
		wait: kind === 'allowed' ? wait : retry === null ? Infinity : retry,
	};
}
