// SPDX-License-Identifier: Apache-2.0

// Buckets in words. Pure.

import {tokens} from '../ui/format.js';
import {algorithmOf} from '../shell/vocabulary.js';

const units = {0.001: 'millisecond', 1: 'second', 60: 'minute', 3600: 'hour', 86400: 'day', 604800: 'week'};

// every formats a duration after "any" or "every".
export function every(seconds) {
	return units[seconds] ?? span(seconds);
}

// span formats a duration in words.
export function span(seconds) {
	for (const [length, name] of [[86400, 'day'], [3600, 'hour'], [60, 'minute'], [1, 'second'], [0.001, 'millisecond']]) {
		const n = seconds / length;
		if (n >= 1 && (Number.isInteger(n) || length === 1)) {
			return `${tokens(n)} ${name}${n === 1 ? '' : 's'}`;
		}
	}
	return `${seconds} seconds`;
}

// refillWords describes the refill of a bucket, the response of v1/bucket.
export function refillWords({algorithm, refill, rate: {tokens: n, per}}) {
	const amount = `${tokens(n)} ${n === 1 ? 'token' : 'tokens'}`;
	switch (algorithmOf(algorithm).shape) {
		case 'sliding':
			return `${amount} in any ${every(per)}`;
		case 'window':
		case 'budget':
			return `${amount} at the start of every ${every(per)}`;
		case 'slots':
			return `${tokens(n)} at a time; a slot is free when its request ends, and ${span(per)} after its last renewal at the latest`;
		case 'queue':
			return `leaks ${amount} per ${every(per)}, evenly`;
		default:
			return refill === 'interval' ? `${amount} at once, every ${every(per)}` : `${perWords(n, per)}, continuously`;
	}
}

// perWords formats a rate: N tokens per unit, or 1 token every interval.
function perWords(n, per) {
	if (units[per] && n >= 1) {
		return `${tokens(n)} ${n === 1 ? 'token' : 'tokens'} per ${units[per]}`;
	}
	const second = n / per;
	return second >= 1 ? `${tokens(second)} tokens per second` : `1 token every ${span(Math.round(per / n * 1000) / 1000)}`;
}
