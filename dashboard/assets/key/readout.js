// SPDX-License-Identifier: Apache-2.0

import {h} from '../ui/dom.js';
import {dur, tokens} from '../ui/format.js';
import {refillWords} from './words.js';

const EVERY = 200; // ms between updates; faster changes are unreadable

// bucketReadout shows the level of a bucket and the decision for a request now.
export function bucketReadout(level) {
	const now = h('span', {class: 'readout-level'}, '–');
	const capacity = h('span', {class: 'readout-capacity'});
	const refill = h('dd');
	const full = h('dd');
	const request = h('dt');
	const verdict = h('span', {class: 'badge'});
	const retry = h('dd');
	const stale = h('p', {class: 'hint readout-stale'});
	let drawn = 0;
	let sentence = '';

	const write = (bucket, held, t) => {
		const {cost} = bucket;
		const live = held !== null;
		const shown = tokens(Math.floor((held ?? level.last[1]) * 10) / 10);
		const waits = level.waits(t);
		const [look, words] = live ? verdictOf(bucket, waits.retry) : ['', 'unknown'];
		const flow = refillWords(bucket);
		set(now, shown);
		set(capacity, ` of ${tokens(level.capacity)} tokens`);
		set(refill, flow);
		set(full, inWords(waits.full));
		set(request, `A request of cost ${tokens(cost)}`);
		verdict.className = `badge ${look}`;
		set(verdict, words);
		set(retry, live ? retryWords(bucket, waits.retry) : 'unknown');
		set(stale, live ? '' : 'Last known state.');
		sentence = `The bucket ${live ? 'holds' : 'last held'} ${shown} of ${tokens(level.capacity)} tokens and gets ${flow}.${live ? ` A request of cost ${tokens(cost)} ${words} now.` : ''}`;
	};
	return {
		node: h('div', {class: 'readout'}, h('p', {class: 'readout-big'}, now, capacity),
			h('dl', {class: 'facts'}, h('dt', null, 'Refill'), refill, h('dt', null, 'Full'), full, request, h('dd', null, verdict), h('dt', null, 'Retry after'), retry), stale),
		// draw shows the state at t and returns it, or null if it is unknown. inflow is the
		// continuous refill in tokens per second.
		draw(t, bucket) {
			if (!level.last) {
				return null;
			}
			const held = level.at(t);
			if (performance.now() - drawn >= EVERY) {
				drawn = performance.now();
				write(bucket, held, t);
			}
			return {live: held !== null, level: held ?? level.last[1], capacity: level.capacity, inflow: held === null ? 0 : level.rising(t), sentence};
		},
	};
}

function verdictOf(bucket, wait) {
	if (bucket.blocked_by) {
		return ['badge-denied', 'is blocked'];
	}
	if (bucket.allowed_by) {
		return ['badge-allowed', 'is allowed, uncharged'];
	}
	if (wait === 0) {
		return ['badge-allowed', 'is allowed'];
	}
	return bucket.shadow ? ['badge-shadow', 'would be denied'] : ['badge-denied', 'is denied'];
}

function retryWords(bucket, wait) {
	if (bucket.blocked_by) {
		return 'when the block ends';
	}
	if (bucket.allowed_by || wait === 0) {
		return 'none';
	}
	return inWords(wait).replace('in ', '');
}

// inWords formats a wait.
function inWords(seconds) {
	if (seconds === null) {
		return 'unknown';
	}
	if (seconds < 0.05) {
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
