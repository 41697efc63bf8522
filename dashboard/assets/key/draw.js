// SPDX-License-Identifier: Apache-2.0

// Draws a level chart on a canvas, several times per second.

import {tokens} from '../ui/format.js';
import {paint} from '../ui/palette.js';

const MARGIN = {left: 46, right: 14, top: 46, bottom: 46};
const AHEAD = 0.14; // share of the width for the future
const BIN = 6; // px; closer decisions share a mark

// backAt returns the seconds before now at x.
export function backAt(state, x) {
	const width = (state.width - MARGIN.left - MARGIN.right) * (1 - AHEAD);
	return (1 - (x - MARGIN.left) / width) * state.span;
}

// drawLevel draws the axes, the curve, its future and the decisions.
export function drawLevel(c, level, state) {
	c.clearRect(0, 0, state.width, state.height);
	if (level.last === null) {
		return;
	}
	const {capacity} = level;
	const plot = {
		left: MARGIN.left, top: MARGIN.top, right: state.width - MARGIN.right, bottom: state.height - MARGIN.bottom,
	};
	plot.now = plot.left + (plot.right - plot.left) * (1 - AHEAD);
	plot.second = (plot.now - plot.left) / state.span;
	plot.x = (t) => plot.now + (t - state.now) * plot.second;
	const top = capacity * 1.06;
	plot.y = (v) => plot.bottom - (Math.max(v, 0) / top) * (plot.bottom - plot.top);
	drawAxes(c, plot, state, capacity);
	drawGaps(c, plot, state, level);
	drawUnknown(c, plot, level);
	drawCurve(c, plot, state, level, capacity);
	drawMarks(c, plot, state, level, capacity);
	drawCursor(c, plot, state, level);
}

let family = '';

function font() {
	return (family ||= getComputedStyle(document.body).fontFamily);
}

function drawAxes(c, plot, {span}, capacity) {
	c.font = `11px ${font()}`;
	c.lineWidth = 1;
	c.textBaseline = 'middle';
	c.textAlign = 'right';
	for (const part of [0, 0.5, 1]) {
		const y = Math.round(plot.y(capacity * part)) + 0.5;
		c.strokeStyle = part === 1 ? paint('text') : paint('grid');
		c.setLineDash(part === 1 ? [5, 4] : []);
		line(c, plot.left, y, plot.right, y);
		c.fillStyle = paint('axis');
		c.fillText(tokens(capacity * part), plot.left - 8, y);
	}
	c.setLineDash([]);
	c.textAlign = 'left';
	c.fillText('tokens', 2, plot.top - 18);
	c.textAlign = 'center';
	c.textBaseline = 'top';
	for (const part of [0, 1 / 3, 2 / 3]) {
		const x = plot.left + (plot.now - plot.left) * part;
		c.textAlign = part === 0 ? 'left' : 'center';
		c.fillText(`−${Math.round(span * (1 - part))} s`, x, plot.bottom + 28);
	}
	c.textAlign = 'center';
	c.fillStyle = paint('text');
	c.fillText('now', plot.now, plot.bottom + 28);
	c.strokeStyle = paint('axis');
	c.globalAlpha = 0.5;
	line(c, Math.round(plot.now) + 0.5, plot.top - 8, Math.round(plot.now) + 0.5, plot.bottom + 22);
	c.globalAlpha = 1;
}

function drawGaps(c, plot, {now}, level) {
	for (const [from, to] of level.gaps) {
		const left = Math.max(plot.x(from), plot.left);
		const right = Math.min(plot.x(to ?? now), plot.now);
		if (right <= left) {
			continue;
		}
		c.save();
		c.beginPath();
		c.rect(left, plot.top, right - left, plot.bottom - plot.top);
		c.clip();
		c.strokeStyle = paint('grid');
		c.lineWidth = 1;
		for (let x = left - (plot.bottom - plot.top); x < right; x += 9) {
			line(c, x, plot.bottom, x + plot.bottom - plot.top, plot.top);
		}
		c.restore();
		label(c, 'not seen', left, right, plot.y(0) - 14);
	}
}

// label writes a text between two positions if it fits.
function label(c, text, left, right, y) {
	if (right - left < c.measureText(text).width + 24) {
		return;
	}
	c.fillStyle = paint('axis');
	c.textAlign = 'center';
	c.textBaseline = 'middle';
	c.fillText(text, (left + right) / 2, y);
}

// drawUnknown labels the empty left side: the server keeps no earlier levels.
function drawUnknown(c, plot, level) {
	label(c, 'drawn since you opened the page', plot.left, plot.x(level.first[0]), plot.y(0) - 14);
}

function drawCurve(c, plot, state, level, capacity) {
	c.save();
	c.beginPath();
	c.rect(plot.left, plot.top - 4, plot.right - plot.left, plot.bottom - plot.top + 6);
	c.clip();
	const fill = c.createLinearGradient(0, plot.top, 0, plot.bottom);
	fill.addColorStop(0, paint('level', 0.28));
	fill.addColorStop(1, paint('level', 0.03));
	c.lineJoin = 'round';
	for (const way of level.curve(state.now)) {
		trace(c, plot, way);
		c.strokeStyle = paint('level');
		c.lineWidth = 2;
		c.stroke();
		c.lineTo(plot.x(way.at(-1)[0]), plot.y(0));
		c.lineTo(plot.x(way[0][0]), plot.y(0));
		c.closePath();
		c.fillStyle = fill;
		c.fill();
	}
	const ahead = level.ahead(state.now, state.now + (plot.right - plot.now) / plot.second);
	if (ahead.length > 1) {
		trace(c, plot, ahead);
		c.setLineDash([2, 4]);
		c.lineWidth = 1.5;
		c.stroke();
	}
	c.restore();
	const here = level.lost === null ? level.at(state.now) : null;
	if (here !== null) {
		c.beginPath();
		c.arc(plot.now, plot.y(Math.min(here, capacity)), 4, 0, 2 * Math.PI);
		c.fillStyle = paint('level');
		c.fill();
		c.lineWidth = 2;
		c.strokeStyle = paint('surface');
		c.stroke();
	}
}

// trace makes a path of the points, without points that fall on the same pixel.
function trace(c, plot, way) {
	c.beginPath();
	let drawn = -Infinity;
	let low = null;
	for (const [i, [t, v]] of way.entries()) {
		const x = Math.max(plot.x(t), plot.left - 2000);
		const y = plot.y(v);
		if (x - drawn < 0.4 && i < way.length - 1 && low !== null && Math.abs(y - low) < 0.4) {
			continue;
		}
		c.lineTo(x, y);
		drawn = x;
		low = y;
	}
}

function drawMarks(c, plot, state, level, capacity) {
	const bins = new Map();
	for (const mark of level.marks(state.now - state.span)) {
		// Bins have fixed times, so that marks do not flicker while they move.
		const bin = Math.floor((mark.t * plot.second) / BIN);
		const b = bins.get(bin) ?? {t: ((bin + 0.5) * BIN) / plot.second, allowed: 0, denied: 0, shadow: 0, elsewhere: 0};
		b[mark.kind] += mark.kind === 'allowed' ? mark.cost : 1;
		bins.set(bin, b);
	}
	c.lineCap = 'round';
	for (const b of bins.values()) {
		const x = plot.x(b.t);
		if (x < plot.left || x > plot.now) {
			continue;
		}
		if (b.allowed > 0) {
			const size = 4 + 12 * Math.min(Math.log1p(b.allowed) / Math.log1p(Math.max(capacity, 1)), 1);
			c.strokeStyle = paint('allowed');
			c.lineWidth = 2.5;
			line(c, x, plot.bottom + 5, x, plot.bottom + 5 + size);
		}
		if (b.denied > 0) {
			cross(c, x, plot.top - 18, 2.6 + Math.min(Math.log2(b.denied) * 0.5, 1.4), paint('denied'));
		}
		if (b.elsewhere > 0) {
			c.strokeStyle = paint('axis');
			c.lineWidth = 1.5;
			c.beginPath();
			c.arc(x, plot.top - 18, 2.5, 0, 2 * Math.PI);
			c.stroke();
		}
		if (b.shadow > 0) {
			diamond(c, x, plot.top - (b.denied > 0 ? 8 : 18), 3.2, paint('shadow'));
		}
	}
	c.lineCap = 'butt';
}

function drawCursor(c, plot, {cursor, now}, level) {
	if (cursor === null) {
		return;
	}
	const x = plot.now - cursor * plot.second;
	c.strokeStyle = paint('text');
	c.lineWidth = 1;
	line(c, x, plot.top, x, plot.bottom);
	const held = level.at(now - cursor);
	if (held !== null) {
		c.beginPath();
		c.arc(x, plot.y(held), 3.5, 0, 2 * Math.PI);
		c.fillStyle = paint('level');
		c.fill();
	}
}

function line(c, x1, y1, x2, y2) {
	c.beginPath();
	c.moveTo(x1, y1);
	c.lineTo(x2, y2);
	c.stroke();
}

function cross(c, x, y, r, color) {
	c.strokeStyle = color;
	c.lineWidth = 2;
	line(c, x - r, y - r, x + r, y + r);
	line(c, x - r, y + r, x + r, y - r);
}

function diamond(c, x, y, r, color) {
	c.fillStyle = color;
	c.beginPath();
	c.moveTo(x, y - r);
	c.lineTo(x + r, y);
	c.lineTo(x, y + r);
	c.lineTo(x - r, y);
	c.fill();
}
