// SPDX-License-Identifier: Apache-2.0
//
// The chart of a lane: the level of its bucket over time, and below it every decision. Allowed requests are above the
// line, denied ones below. Marks at the top show the start of waiting requests. The style sheet sets the colors.
//
//   laneChart({label, onSeek(t), onHover(t, within) or onHover(null)}) → {node, update(run), cursor(t, denied), waits(denied)}
//   arrivalStrip({onSeek(t)})     → {node, update(run), cursor(t)}
//   a run is the result of runOf in run.js

import {replace, svg, h} from '../ui/dom.js';
import {dur, tokens} from '../ui/format.js';

const left = 50;
const right = 10;
const top = 20;
const levelHigh = 132;
const gap = 8;
const stripHigh = 52;
const axisHigh = 22;
const columnWide = 5;
const mostDots = 5; // in a column; if a column has more, columns are bars

export function laneChart({label, onSeek, onHover}) {
	const high = top + levelHigh + gap + stripHigh + axisHigh;
	const plot = frame(high, label, onSeek, onHover);
	let run = null;
	const draw = (width) => {
		if (!run || width <= 0) return;
		const x = scaleX(run.seconds, width);
		const y = (v) => top + levelHigh * (run.high - v) / (run.high - run.low || 1);
		replace(plot.below, starts(run, x, width), grid(run, x, y, width), levelPath(run, x, y), decisions(run, x, top + levelHigh + gap, width), timeAxis(run.seconds, x, high, width));
		plot.place(x, top, high - axisHigh);
		plot.y = y;
	};
	plot.onWidth = draw;
	return {
		node: plot.node,
		update(next) {
			run = next;
			plot.node.setAttribute('aria-label', `${label}: ${run.lane.words.join(' ')}`);
			draw(plot.width());
		},
		cursor(t, denied) {
			if (!run) return;
			plot.cursor(t, run.levelAt(t));
			this.waits(denied);
		},
		// waits draws a line from a denied request to the instant at which a retry is allowed.
		waits(denied) {
			plot.ghost(denied, denied && {t: denied.at + denied.retry, level: Math.min(run.high, denied.level + denied.lack)});
		},
	};
}

export function arrivalStrip({onSeek}) {
	const high = 40;
	const plot = frame(high, 'Requests over time', onSeek);
	let run = null;
	const draw = (width) => {
		if (!run || width <= 0) return;
		const x = scaleX(run.seconds, width);
		const columns = columnsOf(run.arrivals, x, () => 0);
		const most = Math.max(1, ...columns.map((c) => c.counts[0]));
		replace(plot.below, svg('path', {class: 'play-base', d: `M${left} ${high - 4.5}H${width - right}`}),
			svg('path', {class: 'play-come', d: columns.map((c) => bar(c.px, high - 5, -Math.max(4, 30 * c.counts[0] / most))).join('')}),
			svg('text', {class: 'play-tick', x: left - 8, y: high - 26, 'text-anchor': 'end'}, most > 1 ? tokens(most) : ''));
		plot.place(x, 2, high - 4);
	};
	plot.onWidth = draw;
	return {
		node: plot.node,
		update(next) {
			run = next;
			plot.node.setAttribute('aria-label', `Requests over time: ${run.arrivals.length} in ${dur(run.seconds)}`);
			draw(plot.width());
		},
		cursor: (t) => run && plot.cursor(t, null),
	};
}

// frame is the common part of both charts: a picture of a given height, a cursor, and a veil over the future.
function frame(high, label, onSeek, onHover = () => {}) {
	const below = svg('g');
	const veil = svg('rect', {class: 'play-veil', y: 0, height: high - (high > 100 ? axisHigh : 0)});
	const line = svg('path', {class: 'play-cursor'});
	const knob = svg('circle', {class: 'play-knob', r: 4});
	const wait = svg('path', {class: 'play-wait'});
	const node = svg('svg', {class: 'play-chart', role: 'img', 'aria-label': label, height: high}, below, veil, wait, line, knob);
	const plot = {node, below, y: null, width: () => node.clientWidth || node.parentNode?.clientWidth || 0, onWidth: () => {}};
	let x = null;
	let ends = [0, 0];
	plot.place = (scale, from, to) => {
		x = scale;
		ends = [from, to];
	};
	plot.cursor = (t, level) => {
		if (!x) return;
		const at = x(t);
		line.setAttribute('d', `M${at.toFixed(1)} ${ends[0]}V${ends[1]}`);
		veil.setAttribute('x', at.toFixed(1));
		veil.setAttribute('width', Math.max(0, x(x.end) - at).toFixed(1));
		knob.style.display = level === null || !plot.y ? 'none' : '';
		if (level !== null && plot.y) {
			knob.setAttribute('cx', at.toFixed(1));
			knob.setAttribute('cy', plot.y(level).toFixed(1));
		}
	};
	plot.ghost = (denied, then) => wait.setAttribute('d', denied && plot.y && x && Number.isFinite(then.t)
		? `M${x(denied.at).toFixed(1)} ${plot.y(denied.level).toFixed(1)}L${Math.min(x(then.t), x(x.end)).toFixed(1)} ${plot.y(then.level).toFixed(1)}` : '');
	seekable(node, () => x, onSeek, onHover);
	new ResizeObserver(() => plot.onWidth(plot.width())).observe(node);
	return plot;
}

const hoverWide = 8; // pixels

function seekable(node, scale, onSeek, onHover) {
	let down = false;
	const timeOf = (e) => Math.max(0, Math.min(scale().end, scale().invert(e.clientX - node.getBoundingClientRect().left)));
	const seek = (e) => scale() && onSeek(timeOf(e));
	node.addEventListener('pointerleave', () => onHover(null));
	node.addEventListener('pointerdown', (e) => {
		down = true;
		node.setPointerCapture(e.pointerId);
		seek(e);
	});
	node.addEventListener('pointermove', (e) => {
		if (down) seek(e);
		else if (e.pointerType === 'mouse' && scale()) onHover(timeOf(e), Math.abs(scale().invert(hoverWide) - scale().invert(0)));
	});
	for (const end of ['pointerup', 'pointercancel']) {
		node.addEventListener(end, () => {
			down = false;
		});
	}
}

function scaleX(seconds, width) {
	const wide = width - left - right;
	const x = (t) => left + wide * t / seconds;
	x.invert = (px) => seconds * (px - left) / wide;
	x.end = seconds;
	return x;
}

function grid(run, x, y, width) {
	const {high, low, capacity} = run;
	const places = [...new Set([high, high / 2, 0, low].map((v) => Number(v.toFixed(3))))].filter((v) => v >= low);
	const lines = places.map((v) => svg('path', {class: v === 0 ? 'play-zero' : v === capacity ? 'play-full' : 'play-grid', d: `M${left} ${y(v).toFixed(1)}H${width - right}`}));
	const far = places.filter((v, i) => v === 0 || places.every((w, j) => j === i || Math.abs(y(v) - y(w)) > 13 || j > i && w !== 0));
	const words = far.map((v) => svg('text', {class: 'play-tick', x: left - 8, y: y(v) + 4, 'text-anchor': 'end'}, tokens(v)));
	const unit = svg('text', {class: 'play-tick', x: left - 8, y: Math.max(10, y(high) - 10), 'text-anchor': 'end'}, run.lane.algorithm === 'concurrency' ? 'free' : 'tokens');
	return [...lines, ...words, unit];
}

// levelPath is a line through all knots. If several knots share a column of pixels, the line goes through the first, the
// lowest, the highest and the last of them.
function levelPath(run, x, y) {
	const kept = [];
	let column = [];
	const close = () => {
		if (column.length <= 4) kept.push(...column);
		else {
			const byLevel = [...column].sort((a, b) => a[1] - b[1]);
			const low = byLevel[0];
			const high = byLevel.at(-1);
			kept.push(column[0], ...(column.indexOf(low) < column.indexOf(high) ? [low, high] : [high, low]), column.at(-1));
		}
		column = [];
	};
	let now = -1;
	for (const knot of run.knots) {
		const px = Math.floor(x(knot[0]));
		if (px !== now) close();
		now = px;
		column.push(knot);
	}
	close();
	const d = kept.map(([t, v], i) => `${i ? 'L' : 'M'}${x(t).toFixed(1)} ${y(v).toFixed(1)}`).join('');
	const ground = y(Math.max(0, run.low)).toFixed(1);
	return [svg('path', {class: 'play-area', d: `${d}L${x(run.seconds).toFixed(1)} ${ground}L${left} ${ground}Z`}), svg('path', {class: 'play-level', d})];
}

const kinds = ['allowed', 'waits', 'denied'];

// columnsOf groups requests into columns. A column starts at its first request, so that evenly spaced requests are drawn
// evenly, and columns do not touch.
function columnsOf(list, x, kindOf) {
	const columns = [];
	for (const d of list) {
		const px = Math.max(left, Math.min(x(x.end), x(d.at)));
		if (columns.length === 0 || px >= columns.at(-1).px + columnWide - 1e-6) columns.push({px, counts: [0, 0, 0]});
		columns.at(-1).counts[kindOf(d)]++;
	}
	return columns;
}

function bar(px, from, size) {
	return `M${(px - (columnWide - 1) / 2).toFixed(1)} ${from.toFixed(1)}h${columnWide - 1}v${size.toFixed(1)}h${1 - columnWide}Z`;
}

// decisions draws columns above a line (allowed requests, and on top the ones that wait) and below it (denied).
function decisions(run, x, from, width) {
	const columns = columnsOf(run.decisions, x, (d) => kinds.indexOf(d.kind));
	const base = from + stripHigh / 2;
	const half = stripHigh / 2 - 2;
	const most = Math.max(1, ...columns.map(({counts: c}) => Math.max(c[0] + c[1], c[2])));
	const paths = {allowed: '', waits: '', denied: ''};
	for (const {px, counts: [allowed, waits, denied]} of columns) {
		if (most <= mostDots) {
			for (let n = 0; n < allowed; n++) paths.allowed += circle(px, base - 5 - n * 5, 2.3);
			for (let n = allowed; n < allowed + waits; n++) paths.waits += circle(px, base - 5 - n * 5, 1.8);
			for (let n = 0; n < denied; n++) paths.denied += cross(px, base + 5 + n * 5, 2);
			continue;
		}
		const size = (n) => (n > 0 ? Math.max(2, half * Math.sqrt(n / most)) : 0); // a few stay visible beside many
		if (allowed) paths.allowed += bar(px, base - 1, -size(allowed + waits) * allowed / (allowed + waits));
		if (waits) paths.waits += bar(px, base - 1 - size(allowed + waits) * allowed / (allowed + waits), -size(allowed + waits) * waits / (allowed + waits));
		if (denied) paths.denied += bar(px, base + 1, size(denied));
	}
	const how = most <= mostDots ? 'dots' : 'bars';
	return svg('g', {class: `play-${how}`}, svg('path', {class: 'play-base', d: `M${left} ${base}H${width - right}`}),
		svg('text', {class: 'play-tick', x: left - 8, y: base - 8, 'text-anchor': 'end'}, 'allowed'),
		svg('text', {class: 'play-tick', x: left - 8, y: base + 15, 'text-anchor': 'end'}, 'denied'),
		kinds.map((k) => paths[k] && svg('path', {class: `play-${k}`, d: paths[k]})));
}

// starts marks the instants at which allowed requests start, if some of them wait.
function starts(run, x, width) {
	if (!run.decisions.some((d) => d.kind === 'waits')) return [];
	const seen = new Set();
	let d = '';
	for (const {at, wait, kind} of run.decisions) {
		const px = x(at + wait).toFixed(1);
		if (kind === 'denied' || seen.has(px) || at + wait > run.seconds) continue;
		seen.add(px);
		d += `M${px} 3v7`;
	}
	return [svg('text', {class: 'play-tick', x: left - 8, y: 10, 'text-anchor': 'end'}, 'starts'), svg('path', {class: 'play-grid', d: `M${left} 10.5H${width - right}`}),
		svg('path', {class: 'play-starts', d})];
}

function circle(x, y, r) {
	return `M${(x - r).toFixed(1)} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`;
}

function cross(x, y, r) {
	return `M${(x - r).toFixed(1)} ${y - r}l${2 * r} ${2 * r}m0 ${-2 * r}l${-2 * r} ${2 * r}`;
}

function timeAxis(seconds, x, high, width) {
	const rough = seconds / Math.max(2, Math.floor((width - left) / 90));
	const unit = [1e-6, 1e-5, 1e-4, 1e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200]
		.find((u) => u >= rough) ?? 86400;
	const marks = [];
	for (let n = 0; n * unit <= seconds * 1.0001; n++) marks.push(n * unit);
	return marks.map((t) => svg('text', {class: 'play-tick', x: x(t).toFixed(1), y: high - 6, 'text-anchor': t === 0 ? 'start' : x(t) > width - 30 ? 'end' : 'middle'},
		t === 0 ? '0 s' : dur(Number(t.toFixed(6)))));
}

// legend explains the marks; waits(any) shows or hides the mark of waiting requests.
export function legend() {
	const mark = (kind, drawn) => svg('svg', {class: 'play-mark', viewBox: '0 0 12 12', 'aria-hidden': 'true'}, svg('g', {class: 'play-dots'}, svg('path', {class: `play-${kind}`, d: drawn})));
	const waits = h('li', {hidden: true}, mark('waits', circle(6, 6, 3)), 'allowed, waits');
	return {
		node: h('ul', {class: 'plain play-legend', 'aria-label': 'Marks'},
			h('li', null, mark('allowed', circle(6, 6, 3)), 'allowed'), waits, h('li', null, mark('denied', cross(6, 6, 3)), 'denied')),
		waits(any) {
			waits.hidden = !any;
		},
	};
}
