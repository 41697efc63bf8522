// SPDX-License-Identifier: Apache-2.0

// What a bucket is and holds, in words. Pure.

import {tokens} from '../ui/format.js';

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
export function refillWords({algorithm, kind, tokens: n, per}) {
	const amount = `${tokens(n)} ${n === 1 ? 'token' : 'tokens'}`;
	switch (algorithm) {
		case 'sliding_window':
		case 'sliding_log':
			return `${amount} in any ${every(per)}`;
		case 'fixed_window':
		case 'cost_based':
			return `${amount} at the start of every ${every(per)}`;
		case 'leaky_bucket':
			return `leaks ${amount} per ${every(per)}, evenly`;
		default:
			return kind === 'stepped' ? `${amount} at once, every ${every(per)}` : `${perWords(n, per)}, all the time`;
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

// passes says whether a cost fits into what is there, and otherwise when it does: 0, a
// number of seconds, Infinity for never, null where only the next decision tells.
export function passes(level, t, cost) {
	const held = level.at(t);
	const knot = level.last;
	if (held === null || !knot) {
		return null;
	}
	if (held >= cost - 1e-9) {
		return 0;
	}
	const {limit} = knot;
	if (cost > limit.capacity) {
		return Infinity;
	}
	switch (limit.kind) {
		case 'continuous':
			return ((cost - held) * limit.per) / limit.tokens;
		case 'stepped': {
			const way = level.ahead(t, t + limit.per * (Math.ceil((cost - held) / limit.tokens) + 1));
			return (way.find(([, v]) => v >= cost - 1e-9)?.[0] ?? Infinity) - t;
		}
		default:
			return left(level.looked, level.looked?.retryAfter, t);
	}
}

// fullIn is in how many seconds a bucket is full: null where only the server tells.
export function fullIn(level, t) {
	const held = level.at(t);
	const knot = level.last;
	if (held === null || !knot) {
		return null;
	}
	const {limit} = knot;
	if (held >= limit.capacity) {
		return 0;
	}
	if (limit.kind === 'continuous') {
		return ((limit.capacity - held) * limit.per) / limit.tokens;
	}
	return left(level.looked, level.looked?.fullAfter, t);
}

// left is how much is left at t of a time that a look has told: null where none has,
// or where it is over and the next one tells.
function left(look, length, t) {
	if (length === null) {
		return Infinity;
	}
	const rest = length === undefined ? 0 : look.t + length - t;
	return rest > 0 ? rest : null;
}
