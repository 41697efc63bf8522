// SPDX-License-Identifier: Apache-2.0
//
//   violationChart({filter, range}) → {node, load(signal) → the names of rules, or null, destroy()}
//
// Denials over time: a bar per interval, with a color for each of the rules with the most denials.

import {h, replace, show} from '../ui/dom.js';
import {dateTime, dur, num} from '../ui/format.js';
import {chart} from '../ui/chart.js';
import {get} from '../shell/api.js';
import {queryOf} from './query.js';

const colors = ['a', 'b', 'd', 'near', 'level'];

export function violationChart({filter, range}) {
	const total = h('p', {class: 'vio-total'}, h('span', {class: 'skeleton'}, 'counting denials'));
	const place = h('div', {class: 'vio-chart'});
	const node = h('section', {class: 'card', 'aria-label': 'Denials over time'}, total, place);
	let drawn = null;
	return {
		node,
		async load(signal) {
			try {
				const answer = await get(`v1/violations/histogram?${queryOf(filter, range)}`, {signal});
				replace(total, ...summary(answer));
				drawn = chart(place, specOf(answer, range));
				return answer.series.map((s) => s.rule).filter(Boolean);
			} catch (err) {
				if (err.name !== 'AbortError') replace(total, h('span', {class: 'muted'}, `Cannot count the denials: ${show(err.detail ?? err.message, 300)}`));
				return null;
			}
		},
		destroy: () => drawn?.destroy(),
	};
}

const sum = (values) => values.reduce((a, b) => a + b, 0);
const total = (answer, kind) => sum(answer.series.map((s) => sum(s[kind])));

// summary returns the totals.
function summary(answer) {
	const denied = total(answer, 'denied');
	const shadow = total(answer, 'shadow');
	if (answer.rows === 0) return [h('strong', null, 'No denials')];
	const nodes = [];
	if (denied > 0) nodes.push(h('strong', null, num(denied)), denied === 1 ? ' request denied' : ' requests denied');
	if (denied > 0 && shadow > 0) nodes.push(', and ');
	if (shadow > 0) nodes.push(h('strong', {class: 'shadow'}, num(shadow)), shadow === 1 ? ' shadow denial' : ' shadow denials');
	nodes.push(h('span', {class: 'muted'}, ` · ${num(answer.rules)} ${answer.rules === 1 ? 'rule' : 'rules'} · ${num(answer.rows)} ${answer.rows === 1 ? 'row' : 'rows'}`));
	return nodes;
}

const others = (n) => (n === 1 ? '1 other rule' : `${num(n)} other rules`);

// specOf returns the chart of a response: denials by rule, and above them the sum of shadow denials. If
// there are only shadow denials, the chart shows them by rule.
function specOf(answer, range) {
	const only = total(answer, 'denied') === 0;
	const kind = only ? 'shadow' : 'denied';
	let color = 0;
	const series = answer.series.filter((s) => sum(s[kind]) > 0).map((s) => ({
		label: (s.rule ? show(s.rule, 40) : others(answer.rules - answer.series.length + 1)) + (only ? ', in shadow' : ''),
		color: s.rule ? colors[color++ % colors.length] : 'axis', kind: 'bars', values: s[kind],
	}));
	if (!only && total(answer, 'shadow') > 0) {
		series.push({label: 'in shadow', color: 'shadow', kind: 'bars',
			values: Array.from({length: answer.bins}, (_, i) => sum(answer.series.map((s) => s.shadow[i])))});
	}
	const x = Array.from({length: answer.bins}, (_, i) => answer.start + i * answer.step);
	return {
		series, x, height: 180, stacked: 'bars', days: range.to - range.from > 43200e3,
		xRange: [answer.start - answer.step / 2, answer.start + (answer.bins - 0.5) * answer.step],
		y: {label: `Denials per ${dur(answer.step)}`},
		empty: 'No denials in this time.',
		summary: `denials per ${dur(answer.step)} from ${dateTime(range.from / 1000)} to ${dateTime(range.to / 1000)}, ${num(total(answer, kind))} in total, by rule: ` +
			(series.map((s) => `${s.label} ${num(sum(s.values))}`).join(', ') || 'none'),
	};
}
