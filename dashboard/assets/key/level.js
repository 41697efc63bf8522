// SPDX-License-Identifier: Apache-2.0

// What one bucket held over the last minutes, and how it goes on: every decision and
// every look at it is a knot, and between two knots it refills as its algorithm does.
// Pure: no clock, no page. Times are seconds of the server's clock.

const MAX_KNOTS = 4000; // the oldest go first: a busy key has thousands of decisions a minute
const MAX_STEPS = 400; // of a stepped refill that are drawn one by one

// limitOf reads what a bucket refills by. kind is continuous (at a rate), stepped (an
// interval's tokens at a time) or sampled (windows that slide: what they hold next is
// not known from two numbers, so it is looked up again and again). ofFirst is a stepped one
// whose intervals begin anew with the first request after it was full.
export function limitOf({refill, anchor, capacity, rate}) {
	return {kind: kinds[refill], ofFirst: anchor === 'first', capacity, tokens: rate.tokens, per: rate.per};
}

const kinds = {continuous: 'continuous', interval: 'stepped', sliding: 'sampled'};

// stillMissing is how much of what a bucket missed would be missing so many seconds later
// had nobody asked. bucket is as v1/bucket has it. Of a window that slides nobody knows
// when in it the tokens were spent: evenly, it is taken.
export function stillMissing(bucket, missing, seconds) {
	const limit = limitOf(bucket);
	const level = limit.capacity - missing;
	if (bucket.full_after !== null && seconds >= bucket.full_after) {
		return 0;
	}
	const left = limit.kind === 'sampled' ? missing * (1 - seconds / bucket.full_after) :
		limit.capacity - refilled({t: 0, level, limit, step: nextStep(limit, 0, level, bucket.full_after)}, seconds);
	return Math.max(0, Math.ceil(left * 1000 - 1e-6) / 1000); // as what is missing is rounded
}

// nextStep is when a stepped bucket next gets tokens: it is full after so many whole
// intervals, of which the first ends then. null where it is full, or not stepped.
export function nextStep(limit, at, level, fullAfter) {
	const missing = limit.capacity - level;
	if (limit.kind !== 'stepped' || !(missing > 0) || !(fullAfter > 0)) {
		return null;
	}
	return at + fullAfter - (Math.ceil(missing / limit.tokens - 1e-9) - 1) * limit.per;
}

// refilled is what a bucket holds at t that held what the knot says.
export function refilled(knot, t) {
	const {limit, level} = knot;
	const gone = t - knot.t;
	if (gone <= 0 || limit.kind === 'sampled' || level >= limit.capacity) {
		return level;
	}
	if (limit.kind === 'continuous') {
		return Math.min(limit.capacity, level + (gone * limit.tokens) / limit.per);
	}
	if (knot.step === null || t < knot.step) {
		return level;
	}
	const steps = Math.floor((t - knot.step) / limit.per + 1e-9) + 1;
	return Math.min(limit.capacity, level + steps * limit.tokens);
}

// slope is the way from a knot to t, the knot left out: [[t, level], …].
function slope(knot, t) {
	const {limit, level} = knot;
	if (t <= knot.t) {
		return [];
	}
	const missing = limit.capacity - level;
	if (limit.kind === 'sampled' || missing <= 0 || (limit.kind === 'stepped' && knot.step === null)) {
		return [[t, level]];
	}
	if (limit.kind === 'continuous' || missing / limit.tokens > MAX_STEPS) {
		const full = knot.t + (missing * limit.per) / limit.tokens;
		return full < t ? [[full, limit.capacity], [t, limit.capacity]] : [[t, refilled(knot, t)]];
	}
	const way = [];
	let now = level;
	for (let step = knot.step; step <= t && now < limit.capacity; step += limit.per) {
		way.push([step, now]);
		now = Math.min(limit.capacity, now + limit.tokens);
		way.push([step, now]);
	}
	way.push([t, now]);
	return way;
}

// A Level is one bucket over the last span seconds.
export class Level {
	#knots = [];
	#marks = [];
	#gaps = []; // [from, to], to is null while it lasts
	#span;
	#look = {t: -Infinity}; // the latest one
	#step = null; // when a stepped bucket gets tokens, once

	constructor(span) {
		this.#span = span;
	}

	// look notes what the bucket held at t, and in how long it is full.
	look({t, level, limit, fullAfter, retryAfter}) {
		const step = nextStep(limit, t, level, fullAfter);
		if (step !== null) {
			this.#step = step;
		}
		this.#look = {t, fullAfter, retryAfter};
		this.#add({t, level, limit, step});
	}

	// decide notes a decision, and what it left unless that is not known: null.
	decide({t, level, limit, kind, cost, wait}) {
		this.#insert(this.#marks, {t, kind, cost, level, wait});
		if (level !== null) {
			this.#add({t, level, limit, step: limit.kind === 'stepped' ? this.#stepAfter(t, limit) : null});
		}
	}

	// stepAfter is the next step after t, by the last one that is known.
	#stepAfter(t, {per, ofFirst}) {
		const before = this.#knots.findLast((k) => k.t <= t);
		if (ofFirst && before && refilled(before, t) >= before.limit.capacity) {
			if (t > this.#look.t) {
				this.#step = t + per;
			}
			return t + per;
		}
		return this.#step === null ? null : this.#step + (Math.floor((t - this.#step) / per) + 1) * per;
	}

	// lose notes that nobody looks from t on, until the next knot.
	lose(t) {
		if (this.lost === null && this.last !== null) {
			this.#gaps.push([Math.max(t, this.last.t), null]);
		}
	}

	#add(knot) {
		const gap = this.#gaps.at(-1);
		if (gap && gap[1] === null && knot.t > gap[0]) {
			gap[1] = knot.t;
			knot.fresh = true;
		}
		this.#insert(this.#knots, knot);
		this.#forget(this.last.t);
	}

	// insert puts in what comes by two ways, and so not always in order.
	#insert(list, one) {
		let i = list.length;
		while (i > 0 && list[i - 1].t > one.t) {
			i--;
		}
		list.splice(i, 0, one);
	}

	// forget drops what is older than the span. One knot before it stays: the curve
	// comes from there.
	#forget(now) {
		const from = now - this.#span;
		let n = Math.max(this.#knots.length - MAX_KNOTS, 0);
		while (n + 1 < this.#knots.length && this.#knots[n + 1].t < from) {
			n++;
		}
		this.#knots.splice(0, n);
		const first = this.#marks.findIndex((m) => m.t >= from);
		this.#marks.splice(0, Math.max(first < 0 ? this.#marks.length : first, this.#marks.length - MAX_KNOTS));
		this.#gaps = this.#gaps.filter(([, to]) => to === null || to >= from);
	}

	get last() {
		return this.#knots.at(-1) ?? null;
	}

	get looked() {
		return this.#look;
	}

	get first() {
		return this.#knots[0] ?? null;
	}

	// lost says since when nobody looks, null while somebody does.
	get lost() {
		const gap = this.#gaps.at(-1);
		return gap && gap[1] === null ? gap[0] : null;
	}

	get gaps() {
		return this.#gaps;
	}

	// marks are the decisions since from.
	marks(from) {
		return this.#marks.filter((m) => m.t >= from);
	}

	// at is what the bucket held at t, null where nobody knows.
	at(t) {
		if (this.#gaps.some(([from, to]) => t > from && (to === null || t < to))) {
			return null;
		}
		const knot = this.#knots.findLast((k) => k.t <= t);
		return knot ? refilled(knot, t) : null;
	}

	// ahead is how the bucket fills from now on if nobody takes anything.
	ahead(now, until) {
		const last = this.last;
		if (!last || this.lost !== null || last.limit.kind === 'sampled') {
			return [];
		}
		const here = {...last, t: now, level: refilled(last, now)};
		if (here.step !== null && here.step <= now) {
			here.step += (Math.floor((now - here.step) / here.limit.per) + 1) * here.limit.per;
		}
		return [[now, here.level], ...slope(here, until)];
	}

	// curve is what the bucket held until now: lines of [t, level] with nothing between
	// them where nobody looked.
	curve(now) {
		const lines = [];
		let line = [];
		this.#knots.forEach((knot, i) => {
			if (knot.fresh || i === 0) {
				line = [];
				lines.push(line);
			}
			line.push([knot.t, knot.level]);
			const next = this.#knots[i + 1];
			const until = next && !next.fresh ? next.t : next ? this.#gapBefore(next.t) : (this.lost ?? now);
			line.push(...slope(knot, until));
		});
		return lines;
	}

	#gapBefore(t) {
		return this.#gaps.find(([, to]) => to === t)?.[0] ?? t;
	}
}
