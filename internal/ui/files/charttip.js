// SPDX-License-Identifier: Apache-2.0
//
// The values of a chart at one position.
//
//   chartTip(node, spec, plot)  shows the values next to the cursor, or hides the node
//   chartWords(spec, i)         the values in a sentence
//   chartX(spec, x)             a position on the x axis, in words
//   chartValue(spec, series, v) one value in the format of its axis

import {h, replace, show} from './dom.js';
import {dateTime, dur, num, time} from './format.js';

const nearMark = 8; // the largest distance of a described mark from the cursor, in pixels
const mostTipMarks = 4;

export function chartX(spec, x) {
	if (spec.xKind !== 'seconds') return spec.utc ? new Date(x * 1000).toISOString().replace('T', ' ').replace('.000Z', 'Z') : spec.days ? dateTime(x) : time(x);
	return x === 0 ? '0 s' : dur(Number(x.toFixed(6)));
}

export function chartValue(spec, series, v) {
	const axis = series.scale && series.scale !== 'y' ? spec.scales?.[series.scale] : spec.y;
	return v === null || v === undefined ? '–' : (axis?.format ?? num)(v);
}

export function chartWords(spec, i) {
	const values = spec.series.map((s) => `${s.label} ${chartValue(spec, s, s.values[i])}`);
	const marks = (spec.marks ?? []).filter((m) => m.label && m.x === spec.x[i]).map((m) => show(m.label, 80));
	return `${chartX(spec, spec.x[i])}: ${[...values, ...marks.slice(0, mostTipMarks)].join(', ')}`;
}

export function chartTip(node, spec, u) {
	const {idx, left} = u.cursor;
	if (idx === null || idx === undefined || left < 0 || spec.x[idx] === undefined) {
		node.hidden = true;
		return;
	}
	const marks = (spec.marks ?? []).filter((m) => m.label && Math.abs(u.valToPos(m.x, 'x') - left) <= nearMark);
	const rows = [...spec.series].reverse().map((s) => tipRow(s.color, s.label, chartValue(spec, s, s.values[idx])));
	replace(node, h('div', {class: 'chart-tip-x'}, chartX(spec, spec.x[idx])), rows,
		marks.slice(0, mostTipMarks).map((m) => tipRow(m.color, show(m.label, 80), '')),
		marks.length > mostTipMarks && h('div', {class: 'muted'}, `and ${marks.length - mostTipMarks} more`));
	node.hidden = false;
	placeTip(node, u, left);
}

function tipRow(color, label, value) {
	return h('div', {class: 'chart-tip-row'}, h('span', {class: 'dot', style: {'--c': `var(--chart-${color})`}}),
		h('span', {class: 'chart-tip-label'}, label), h('span', {class: 'chart-tip-value'}, value));
}

function placeTip(node, u, left) {
	const from = u.bbox.left / devicePixelRatio;
	const beside = left > u.over.clientWidth / 2 ? from + left - node.offsetWidth - 14 : from + left + 14;
	node.style.transform = `translate(${Math.max(0, Math.round(beside))}px, 8px)`;
}
