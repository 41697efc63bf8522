// SPDX-License-Identifier: Apache-2.0
//
// A lane of the response, prepared for drawing and for queries about an instant.
//
//   runOf(lane, seconds) → {lane, seconds, capacity, high, low, decisions, arrivals, knots, levelAt(t), until(t), near(t, within)}
//     decisions: [{at, kind: allowed|waits|denied, retry, remaining, wait, before, level, cost, client, attempt, lack}]
//     knots: [[t, level], …], including the levels before and after each request
//   exact(seconds)  a time with more digits than dur has

import {dur} from '../ui/format.js';

export function runOf(lane, seconds) {
	const decisions = lane.decisions.map(([at, allowed, retry, remaining, wait, before, level, cost, client, attempt]) => ({
		at, kind: !allowed ? 'denied' : wait > 0 ? 'waits' : 'allowed', retry: retry === null ? Infinity : retry, remaining, wait, before, level, cost, client, attempt,
		lack: Math.max(0, cost - Math.max(level, 0)),
	}));
	const knots = [];
	let next = 0;
	for (const [t, level] of lane.levels) {
		for (; next < decisions.length && decisions[next].at < t; next++) knots.push(...around(decisions[next]));
		knots.push([t, level]);
	}
	const counts = {allowed: [0], waits: [0], denied: [0]};
	for (const d of decisions) {
		for (const kind of Object.keys(counts)) counts[kind].push(counts[kind].at(-1) + (d.kind === kind ? 1 : 0));
	}
	const low = Math.min(0, ...decisions.map((d) => d.level));
	const run = {
		lane, seconds, capacity: lane.capacity, high: lane.capacity, low, decisions, knots,
		arrivals: decisions.filter((d) => d.attempt === 1),
		levelAt: (t) => levelAt(knots, t),
		// until counts the decisions up to t.
		until(t) {
			const n = after(decisions, (d) => d.at, t);
			return {n, last: decisions[n - 1] ?? null, allowed: counts.allowed[n] + counts.waits[n], denied: counts.denied[n]};
		},
		// near returns the decisions of the nearest instant, at most within seconds away; n is the number of the first one.
		near(t, within) {
			const n = after(decisions, (d) => d.at, t);
			const best = [decisions[n - 1], decisions[n]].filter((d) => d && Math.abs(d.at - t) <= within).sort((a, b) => Math.abs(a.at - t) - Math.abs(b.at - t))[0];
			if (!best) return {n: 0, list: []};
			const first = after(decisions, (d) => d.at, best.at - 1e-7);
			return {n: first + 1, list: decisions.slice(first, after(decisions, (d) => d.at, best.at))};
		},
	};
	return run;
}

function around(d) {
	return d.before === d.level ? [[d.at, d.level]] : [[d.at, d.before], [d.at, d.level]];
}

// after counts the entries at t or earlier.
function after(list, timeOf, t) {
	let from = 0;
	let to = list.length;
	while (from < to) {
		const middle = (from + to) >> 1;
		if (timeOf(list[middle]) <= t + 1e-9) from = middle + 1;
		else to = middle;
	}
	return from;
}

function levelAt(knots, t) {
	const n = after(knots, (k) => k[0], t);
	const a = knots[Math.max(0, n - 1)];
	const b = knots[n];
	if (!b || b[0] <= a[0]) return a[1];
	return a[1] + (b[1] - a[1]) * (t - a[0]) / (b[0] - a[0]);
}

export function exact(seconds) {
	if (seconds === 0) return '0 s';
	return seconds < 0.1 ? `${Number((seconds * 1000).toFixed(3))} ms` : seconds < 120 ? `${Number(seconds.toFixed(6))} s` : dur(seconds);
}
