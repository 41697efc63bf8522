// SPDX-License-Identifier: Apache-2.0

// What one bucket held over the last minutes, and how it goes on. The server sends points;
// this draws straight lines between them, and calculates no refill. Pure: no clock, no page.
// Times are seconds of the server's clock.

const MAX_POINTS = 8000; // the oldest go first: a busy key has thousands of decisions a minute
const MAX_MARKS = 4000;

// pointAt reads a line of [t, level] at t. The first point is at t or before, and the last
// one goes on.
export function pointAt(line, t) {
	const n = after(line, t);
	const [a, b] = [line[Math.max(n - 1, 0)], line[n]];
	return b && b[0] > a[0] ? a[1] + ((b[1] - a[1]) * (t - a[0])) / (b[0] - a[0]) : a[1];
}

// after is how many points lie at t or earlier.
function after(line, t) {
	let from = 0;
	let to = line.length;
	while (from < to) {
		const middle = (from + to) >> 1;
		if (line[middle][0] <= t) {
			from = middle + 1;
		} else {
			to = middle;
		}
	}
	return from;
}

// A Level is one bucket over the last span seconds.
export class Level {
	#lines = []; // of [t, level]; between two of them nobody looked
	#ahead = []; // how the last one goes on, from its end
	#marks = [];
	#span;
	#lost = null;
	#told = null;

	constructor(span) {
		this.#span = span;
		this.capacity = 0;
	}

	// tell notes an event of the server: its points, [seconds after t, level], of which those
	// above 0 are still to come, and the waits at t. Events come in order.
	tell({t, levels, retry, full}) {
		if (levels.length === 0 || (this.#lost !== null && t <= this.#lost)) {
			return;
		}
		this.#told = {t, retry, full};
		const points = levels.map(([at, level]) => [t + at, level]);
		const past = points.filter((_, i) => levels[i][0] <= 0);
		this.#ahead = points.slice(past.length - 1);
		if (this.#lines.length === 0 || this.#lost !== null) {
			this.#lines.push([]);
			this.#lost = null;
		}
		const line = this.#lines.at(-1);
		line.push(...past.filter(([at]) => at >= (line.at(-1)?.[0] ?? -Infinity)));
		this.#forget(t - this.#span);
	}

	// decide notes a decision.
	decide({t, kind, cost, wait}) {
		this.#marks.push({t, kind, cost, wait});
	}

	// lose notes that nobody looks from t on, until the next event.
	lose(t) {
		if (this.#lost === null && this.last !== null) {
			this.#lost = Math.max(t, this.last[0]);
			this.#extend(this.#lost);
		}
	}

	// extend makes what was to come until t a part of the last line.
	#extend(t) {
		const line = this.#lines.at(-1);
		line.push(...this.#ahead.slice(1).filter(([at]) => at < t), [t, pointAt(this.#ahead, t)]);
	}

	// forget drops what is older than from. One point before it stays: the line comes from
	// there.
	#forget(from) {
		while (this.#lines.length > 1 && this.#lines[0].at(-1)[0] < from) {
			this.#lines.shift();
		}
		const [first] = this.#lines;
		first.splice(0, Math.max(after(first, from) - 1, first.length - MAX_POINTS, 0));
		const marks = this.#marks.findIndex((m) => m.t >= from);
		this.#marks.splice(0, Math.max(marks < 0 ? this.#marks.length : marks, this.#marks.length - MAX_MARKS));
	}

	get first() {
		return this.#lines[0]?.[0] ?? null;
	}

	// last is the latest point, [t, level].
	get last() {
		return this.#lines.at(-1)?.at(-1) ?? null;
	}

	// lost says since when nobody looks, null while somebody does.
	get lost() {
		return this.#lost;
	}

	// gaps are when nobody looked: [from, to], to is null while it lasts.
	get gaps() {
		const gaps = this.#lines.slice(1).map((line, i) => [this.#lines[i].at(-1)[0], line[0][0]]);
		return this.#lost === null ? gaps : [...gaps, [this.#lost, null]];
	}

	// marks are the decisions since from.
	marks(from) {
		return this.#marks.filter((m) => m.t >= from);
	}

	// at is what the bucket held at t, null where nobody knows.
	at(t) {
		const line = this.#lines.findLast((l) => l[0][0] <= t);
		if (!line || (t > line.at(-1)[0] && (line !== this.#lines.at(-1) || this.#lost !== null))) {
			return null;
		}
		return pointAt(t > line.at(-1)[0] ? this.#ahead : line, t);
	}

	// ahead is how the bucket goes on from now if nobody takes anything.
	ahead(now, until) {
		if (this.last === null || this.#lost !== null) {
			return [];
		}
		return [[now, pointAt(this.#ahead, now)], ...this.#ahead.filter(([t]) => t > now && t < until), [until, pointAt(this.#ahead, until)]];
	}

	// rising is by how much the line rises at now, in a second.
	rising(now) {
		const n = after(this.#ahead, now);
		const [a, b] = [this.#ahead[n - 1], this.#ahead[n]];
		return a && b ? (b[1] - a[1]) / (b[0] - a[0]) : 0;
	}

	// curve is what the bucket held until now: lines of [t, level] with nothing between
	// them where nobody looked.
	curve(now) {
		const lines = this.#lines.map((line) => [...line]);
		if (lines.length > 0 && this.#lost === null && now > this.last[0]) {
			lines.at(-1).push(...this.#ahead.slice(1).filter(([t]) => t < now), [now, pointAt(this.#ahead, now)]);
		}
		return lines;
	}

	// waits are the waits of the last event, counted down to t: retry until a request of the
	// usual cost passes, full until the bucket is full. Infinity for never, null where nobody
	// knows.
	waits(t) {
		const rest = (length) => (length === null ? Infinity : Math.max(this.#told.t + length - t, 0));
		if (this.last === null || this.#lost !== null) {
			return {retry: null, full: null};
		}
		return {retry: rest(this.#told.retry), full: rest(this.#told.full)};
	}
}
