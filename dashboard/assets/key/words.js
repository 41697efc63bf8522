// SPDX-License-Identifier: Apache-2.0

// What a bucket is and holds, in words. Pure.

import {tokens} from '../ui/format.js';
import {algorithmOf} from '../shell/vocabulary.js';

const units = {0.001: 'millisecond', 1: 'second', 60: 'minute', 3600: 'hour', 86400: 'day', 604800: 'week'};

// every is a length of time behind "for each" or "every".
export function every(seconds) {
	return units[seconds] ?? span(seconds);
}

// span is a length of time as it is said.
export function span(seconds) {
	for (const [length, name] of [[86400, 'day'], [3600, 'hour'], [60, 'minute'], [1, 'second'], [0.001, 'millisecond']]) {
		const n = seconds / length;
		if (n >= 1 && (Number.isInteger(n) || length === 1)) {
			return `${tokens(n)} ${name}${n === 1 ? '' : 's'}`;
		}
	}
	return `${seconds} seconds`;
}

// refillWords say how a bucket gets tokens.
// bucket is as v1/bucket has it.
export function refillWords({algorithm, refill, rate: {tokens: n, per}}) {
	const amount = `${tokens(n)} ${n === 1 ? 'token' : 'tokens'}`;
	switch (algorithmOf(algorithm).shape) {
		case 'sliding':
			return `${amount} in any ${every(per)}`;
		case 'window':
		case 'budget':
			return `${amount} at the start of every ${every(per)}`;
		case 'queue':
			return `leaks ${amount} per ${every(per)}, evenly`;
		default:
			return refill === 'interval' ? `${amount} at once, every ${every(per)}` : `${perWords(n, per)}, all the time`;
	}
}

// perWords is a rate: so many in a unit of time, or one every so often.
function perWords(n, per) {
	if (units[per] && n >= 1) {
		return `${tokens(n)} ${n === 1 ? 'token' : 'tokens'} per ${units[per]}`;
	}
	const second = n / per;
	return second >= 1 ? `${tokens(second)} tokens per second` : `1 token every ${span(Math.round(per / n * 1000) / 1000)}`;
}
