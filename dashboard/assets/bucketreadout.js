// SPDX-License-Identifier: Apache-2.0

import {h} from './ui/dom.js';
import {dur, tokens} from './ui/format.js';
import {fullIn, passes, refillWords} from './bucketwords.js';

const EVERY = 200; // ms between changes of the numbers: faster cannot be read

// bucketReadout says in numbers and words what a bucket holds, and what would become of
// a request now.
export function bucketReadout(level) {
	const held = h('span', {class: 'readout-level'}, '–');
	const capacity = h('span', {class: 'readout-capacity'});
	const refill = h('dd');
	const full = h('dd');
	const request = h('dt');
	const verdict = h('span', {class: 'badge'});
	const retry = h('dd');
	let drawn = 0;
	let sentence = '';
	return {
		limit: null,
		node: h('div', {class: 'readout'}, h('p', {class: 'readout-big'}, held, capacity),
			h('dl', {class: 'facts'}, h('dt', null, 'Refill'), refill, h('dt', null, 'Full'), full, request, h('dd', null, verdict), h('dt', null, 'Retry after'), retry)),
		// draw shows what is so at t, and returns it: null where nothing is known.
		draw(t, bucket) {
			const knot = level.last;
			if (!knot) {
				return null;
			}
			this.limit = {...knot.limit, algorithm: bucket.algorithm};
			const now = level.at(t);
			const shown = now ?? knot.level;
			const fresh = performance.now();
			if (fresh - drawn >= EVERY) {
				drawn = fresh;
				const cost = bucket.cost ?? 1;
				const wait = passes(level, t, cost);
				set(held, tokens(Math.floor(shown * 10) / 10));
				set(capacity, ` of ${tokens(knot.limit.capacity)} tokens`);
				set(refill, refillWords(this.limit));
				set(full, inWords(fullIn(level, t)));
				set(request, `A request of cost ${tokens(cost)}`);
				const [look, words] = verdictOf(bucket, wait, shown >= cost);
				verdict.className = `badge ${look}`;
				set(verdict, words);
				set(retry, bucket.blocked_by ? `when the block ends` : wait === null ? (shown >= cost ? 'none' : 'the next decision tells') : wait === 0 ? 'none' : inWords(wait).replace('in ', ''));
				sentence = `The bucket holds ${tokens(Math.floor(shown * 10) / 10)} of ${tokens(knot.limit.capacity)} tokens and gets ${refillWords(this.limit)}. A request of cost ${tokens(cost)} ${words} now.`;
			}
			return {level: shown, capacity: knot.limit.capacity, filling: now !== null && knot.limit.kind !== 'sampled', sentence};
		},
	};
}

function verdictOf(bucket, wait, fits) {
	if (bucket.blocked_by) {
		return ['badge-denied', 'is blocked'];
	}
	if (bucket.allowed_by) {
		return ['badge-allowed', 'passes, uncharged'];
	}
	if (wait === 0 || (wait === null && fits)) {
		return ['badge-allowed', 'passes'];
	}
	return bucket.shadow ? ['badge-shadow', 'would be denied'] : ['badge-denied', 'is denied'];
}

// inWords is when something is so.
function inWords(seconds) {
	if (seconds === null) {
		return 'unknown';
	}
	if (seconds <= 0) {
		return 'now';
	}
	if (seconds === Infinity) {
		return 'never';
	}
	return `in ${seconds < 10 ? `${seconds.toFixed(1)} s` : dur(Math.ceil(seconds))}`;
}

function set(node, text) {
	if (node.textContent !== text) {
		node.textContent = text;
	}
}
