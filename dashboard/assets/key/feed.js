// SPDX-License-Identifier: Apache-2.0

import {stream} from '../shell/api.js';

// followBucket watches one bucket, which was last seen at since, if at all. onBucket(bucket)
// is told of it twice a second, onLevel(event) how its level went and goes on, onDecision(decision)
// of each decision, onDropped(count) of those that were too many, onTrouble(text) why there is no
// bucket at the moment, '' when there is again, and onState as a stream's. Times are seconds of the
// server's clock, which now() shows; heard() is the last one that came.
export function followBucket(key, since, {onBucket, onLevel, onDecision, onDropped, onTrouble, onState}) {
	let ahead = null; // this machine's clock, of the server's
	let anew = true; // the clocks may have been set meanwhile
	let heard = null;
	const at = (t) => {
		const seen = Date.now() / 1000 - t;
		ahead = anew ? seen : Math.min(ahead, seen); // the least delay is nearest to the truth
		anew = false;
		heard = Math.max(heard ?? t, t);
	};
	if (Number.isFinite(since)) at(since);
	const events = {
		watch({at: t, bucket, levels, decisions, dropped, retry_after: retry, full_after: full}) {
			at(t);
			if (bucket) {
				onTrouble('');
				onBucket(bucket);
			}
			onLevel({t, levels, retry, full});
			decisions.forEach((d) => onDecision(decisionOf(d)));
			if (dropped > 0) {
				onDropped(dropped);
			}
		},
		trouble({detail}) {
			onTrouble(detail);
		},
	};
	const feed = stream(`v1/watch?${new URLSearchParams({key})}`, {onEvent: (name, data) => events[name]?.(data), onState: (state, problem) => {
		anew ||= state === 'live'; // till then the old one is better than none
		onState(state, problem);
	}});
	return {
		now: () => Date.now() / 1000 - (ahead ?? 0),
		heard: () => heard,
		close: () => feed.close(),
	};
}

// decisionOf is a decision as the page shows it.
function decisionOf({at, allowed, cost, remaining, retry_after: retry, wait, shadow, degraded}) {
	const kind = allowed ? 'allowed' : shadow ? 'shadow' : retry === 0 ? 'elsewhere' : 'denied';
	return {t: at, kind, cost, left: remaining, degraded, wait: allowed ? wait : retry ?? Infinity};
}
