// SPDX-License-Identifier: Apache-2.0

// The level of a bucket over the last minutes and its future. The server sends points; Level
// interpolates linearly between them and calculates no refill. Pure: no clock, no page.
// Times are seconds of the server's clock.

const MAX_POINTS = 8000; // older points are dropped; a busy key has thousands of decisions per minute
const MAX_MARKS = 4000;

// pointAt interpolates a line of [t, level] at t. The first point must be at t or earlier; after the
// last point the line is constant.
export function pointAt(line, t) {
	const n = after(line, t);
	const [a, b] = [line[Math.max(n - 1, 0)], line[n]];
	return b && b[0] > a[0] ? a[1] + ((b[1] - a[1]) * (t - a[0])) / (b[0] - a[0]) : a[1];
}

// after returns the number of points at t or earlier.
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

// A Level holds the last span seconds of a bucket.
export class Level {
	#lines = []; // of [t, level]; between two lines there is no data
	#ahead = []; // the predicted continuation of the last line
	#marks = [];
	#span;
	#lost = null;
	#told = null;

	constructor(span) {
		this.#span = span;
		this.capacity = 0;
	}

	// tell adds an event of the server: its points, [seconds after t, level], and the waits at t.
	// Points after t are predictions. Events must be in order.
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

	// decide adds a decision.
	decide({t, kind, cost, wait}) {
		this.#marks.push({t, kind, cost, wait});
	}

	// lose starts a gap at t, until the next event.
	lose(t) {
		if (this.#lost === null && this.last !== null) {
			this.#lost = Math.max(t, this.last[0]);
			this.#extend(this.#lost);
		}
	}

	// extend appends the predictions until t to the last line.
	#extend(t) {
		const line = this.#lines.at(-1);
		line.push(...this.#ahead.slice(1).filter(([at]) => at < t), [t, pointAt(this.#ahead, t)]);
	}

	// forget drops points before from, except the last one, where the visible line starts.
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

	// last returns the latest point, [t, level].
	get last() {
		return this.#lines.at(-1)?.at(-1) ?? null;
	}

	// lost returns the start of the current gap, or null.
	get lost() {
		return this.#lost;
	}

	// gaps returns the times without data, [from, to]; to is null for the current gap.
	get gaps() {
		const gaps = this.#lines.slice(1).map((line, i) => [this.#lines[i].at(-1)[0], line[0][0]]);
		return this.#lost === null ? gaps : [...gaps, [this.#lost, null]];
	}

	// marks returns the decisions since from.
	marks(from) {
		return this.#marks.filter((m) => m.t >= from);
	}

	// at returns the level at t, or null if it is unknown.
	at(t) {
		const line = this.#lines.findLast((l) => l[0][0] <= t);
		if (!line || (t > line.at(-1)[0] && (line !== this.#lines.at(-1) || this.#lost !== null))) {
			return null;
		}
		return pointAt(t > line.at(-1)[0] ? this.#ahead : line, t);
	}

	// ahead returns the future level without requests.
	ahead(now, until) {
		if (this.last === null || this.#lost !== null) {
			return [];
		}
		return [[now, pointAt(this.#ahead, now)], ...this.#ahead.filter(([t]) => t > now && t < until), [until, pointAt(this.#ahead, until)]];
	}

	// rising returns the slope at now, in tokens per second.
	rising(now) {
		const n = after(this.#ahead, now);
		const [a, b] = [this.#ahead[n - 1], this.#ahead[n]];
		return a && b ? (b[1] - a[1]) / (b[0] - a[0]) : 0;
	}

	// curve returns the level until now, as lines of [t, level] with gaps between them.
	curve(now) {
		const lines = this.#lines.map((line) => [...line]);
		if (lines.length > 0 && this.#lost === null && now > this.last[0]) {
			lines.at(-1).push(...this.#ahead.slice(1).filter(([t]) => t < now), [now, pointAt(this.#ahead, now)]);
		}
		return lines;
	}

	// waits returns the waits of the last event, counted down to t: retry until a request of the
	// usual cost is allowed, full until the bucket is full. Infinity means never, null unknown.
	waits(t) {
		const rest = (length) => (length === null ? Infinity : Math.max(this.#told.t + length - t, 0));
		if (this.last === null || this.#lost !== null) {
			return {retry: null, full: null};
		}
		return {retry: rest(this.#told.retry), full: rest(this.#told.full)};
	}
}
