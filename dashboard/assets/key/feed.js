// SPDX-License-Identifier: Apache-2.0

import {stream} from '../shell/api.js';

// followBucket watches a bucket. since is the time of its last known state, or NaN. It calls
//
//   onBucket(bucket)      twice per second
//   onLevel(event)        with past and predicted levels
//   onDecision(decision)  for each decision
//   onDropped(count)      if there were too many decisions to send
//   onTrouble(text)       with the reason if the bucket is unavailable, '' when it is back
//   onState               as stream does
//
// Times are seconds of the server's clock: now() is the current time, heard() the time of the last event.
export function followBucket(key, since, {onBucket, onLevel, onDecision, onDropped, onTrouble, onState}) {
	let ahead = null; // seconds by which the local clock is ahead of the server's
	let anew = true; // measure ahead again, because a clock may have been set
	let heard = null;
	const at = (t) => {
		const seen = Date.now() / 1000 - t;
		ahead = anew ? seen : Math.min(ahead, seen); // the event with the least delay gives the best estimate
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
		anew ||= state === 'live'; // until then, the old estimate is better than none
		onState(state, problem);
	}});
	return {
		now: () => Date.now() / 1000 - (ahead ?? 0),
		heard: () => heard,
		close: () => feed.close(),
	};
}

// decisionOf converts a decision for the page.
function decisionOf({at, allowed, cost, remaining, retry_after: retry, wait, shadow, degraded}) {
	const kind = allowed ? 'allowed' : shadow ? 'shadow' : retry === 0 ? 'elsewhere' : 'denied';
	return {t: at, kind, cost, left: remaining, degraded, wait: allowed ? wait : retry ?? Infinity};
}
