// SPDX-License-Identifier: Apache-2.0
//
// Bands and marks of a plot.
//
//   drawBands(plot, bands)  draws shaded spans under the lines
//   drawMarks(plot, marks)  draws ticks, dots, crosses and lines over the lines

import {paint} from './palette.js';

const rowHeight = 12; // of marks at the bottom of the plot, in CSS pixels

export function drawBands(u, bands) {
	const {ctx, bbox} = u;
	ctx.save();
	ctx.beginPath();
	ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
	ctx.clip();
	for (const b of bands) {
		const left = b.from === undefined ? bbox.left : u.valToPos(b.from, 'x', true);
		const right = b.to === undefined ? bbox.left + bbox.width : u.valToPos(b.to, 'x', true);
		const top = b.high === undefined ? bbox.top : u.valToPos(b.high, 'y', true);
		const foot = b.low === undefined ? bbox.top + bbox.height : u.valToPos(b.low, 'y', true);
		ctx.fillStyle = paint(b.color ?? 'axis', 0.12);
		ctx.fillRect(left, top, right - left, foot - top);
		if (b.label) writeBand(ctx, b, left, right, top);
	}
	ctx.restore();
}

function writeBand(ctx, band, left, right, top) {
	const px = devicePixelRatio;
	ctx.font = `${11 * px}px -apple-system, "Segoe UI", Roboto, Arial, sans-serif`;
	if (ctx.measureText(band.label).width > right - left) return;
	ctx.fillStyle = paint('text');
	ctx.textAlign = 'left';
	ctx.textBaseline = 'top';
	ctx.fillText(band.label, left + 4 * px, top + 4 * px);
}

export function drawMarks(u, marks) {
	const {ctx, bbox} = u;
	const px = devicePixelRatio;
	const {min, max} = u.scales.x;
	ctx.save();
	ctx.lineWidth = 1.5 * px;
	ctx.lineCap = 'round';
	for (const m of marks) {
		if (m.x < min || m.x > max) continue;
		const x = u.valToPos(m.x, 'x', true);
		const atFoot = m.y === undefined || m.y === null;
		const y = atFoot ? bbox.top + bbox.height - (0.5 + (m.row ?? 0)) * rowHeight * px : u.valToPos(m.y, 'y', true);
		ctx.strokeStyle = paint(m.color);
		ctx.fillStyle = paint(m.color);
		if (m.shape === 'line') drawRule(ctx, x, bbox, px);
		else drawMark(ctx, m.shape ?? 'tick', x, y, px);
	}
	ctx.restore();
}

// A line from top to bottom marks an event that affects the whole chart.
function drawRule(ctx, x, bbox, px) {
	ctx.beginPath();
	ctx.setLineDash([4 * px, 4 * px]);
	ctx.moveTo(x, bbox.top);
	ctx.lineTo(x, bbox.top + bbox.height);
	ctx.stroke();
	ctx.setLineDash([]);
}

function drawMark(ctx, shape, x, y, px) {
	ctx.beginPath();
	if (shape === 'dot') {
		ctx.arc(x, y, 3 * px, 0, 2 * Math.PI);
		ctx.fill();
	} else if (shape === 'cross') {
		const r = 3 * px;
		ctx.moveTo(x - r, y - r);
		ctx.lineTo(x + r, y + r);
		ctx.moveTo(x + r, y - r);
		ctx.lineTo(x - r, y + r);
		ctx.stroke();
	} else {
		ctx.moveTo(x, y - 4 * px);
		ctx.lineTo(x, y + 4 * px);
		ctx.stroke();
	}
}
