// SPDX-License-Identifier: Apache-2.0
//
// The tiles and charts of the overview. Each function returns {node, update(), destroy()}.
//
//   rateTiles(live), rateChart(live), latencyChart(live)

import {h} from '../ui/dom.js';
import {dur, num, pct} from '../ui/format.js';
import {chart, sparkline} from '../ui/chart.js';

const now = 10; // seconds; the latency above the chart is their mean
const minute = 60; // seconds that the tiles cover
const sparkSeconds = 120;

const tiles = [
	{field: 'allowed', column: 0, label: 'Allowed', about: 'requests that were allowed'},
	{field: 'denied', column: 1, label: 'Denied', about: 'requests that were denied'},
	{field: 'shadow', column: 2, label: 'Shadow denials', about: 'requests that shadow rules would have denied'},
	{field: 'degraded', column: 3, label: 'Degraded', about: 'requests decided without the store'},
];

export function rateTiles(live) {
	const made = tiles.map((t) => {
		const value = h('span');
		const note = h('div', {class: 'tile-note'});
		const node = h('div', {class: 'tile', title: `${t.label}: ${t.about}`}, h('div', {class: 'tile-label'}, h('span', {class: 'dot', style: {'--c': `var(--chart-${t.field})`}}), t.label),
			h('div', {class: 'tile-value'}, value, h('span', {class: 'tile-unit'}, ' /s')), note);
		return {...t, value, noteNode: note, node, spark: sparkline(node, [], {color: t.field, max: 1})};
	});
	const update = () => {
		const last = live.sums(minute);
		const {values} = live.columns(sparkSeconds);
		for (const t of made) {
			const per = last.seconds ? last[t.field] / last.seconds : null;
			t.value.textContent = per === null ? '–' : num(per < 100 ? Number(per.toFixed(1)) : per);
			t.noteNode.textContent = last.seconds ? noteOf(t.field, last) : 'no data yet';
			t.spark.update(padded(values[t.column]));
		}
	};
	return {node: h('section', {class: 'tiles', 'aria-label': 'Requests per second in the last minute'}, made.map((m) => m.node)), update, destroy() {}};
}

function noteOf(field, last) {
	if (!last[field]) return 'none in the last minute';
	return `${num(last[field])} in the last minute${field === 'denied' ? `, ${pct(last.denied, last.allowed + last.denied)}` : ''}`;
}

function padded(values) {
	return [...Array(Math.max(0, sparkSeconds - values.length)).fill(null), ...values];
}

const ranges = [[300, '5 min'], [900, '15 min']];

// rangeButtons selects the time range of the charts.
function rangeButtons(chosen, change) {
	const node = h('div', {class: 'segmented', role: 'group', 'aria-label': 'Time shown'});
	node.append(...ranges.map(([seconds, label]) => h('button', {type: 'button', 'aria-pressed': String(seconds === chosen), dataset: {range: seconds}, onclick: () => {
		press(node, (b) => b.dataset.range === String(seconds));
		change(seconds);
	}}, label)));
	return node;
}

// press marks the selected button.
function press(group, chosen) {
	for (const b of group.children) b.setAttribute('aria-pressed', String(chosen(b)));
}

function restartMarks(live, [from]) {
	return live.restarts.filter((r) => r.t > from).map((r) => ({x: r.t, color: 'axis', shape: 'line', label: 'server restarted'}));
}

export function rateChart(live, onRange) {
	let seconds = ranges[0][0];
	const place = h('div');
	const node = h('section', {class: 'card over-rates'}, h('div', {class: 'card-head'}, h('h2', null, 'Requests per second'),
		rangeButtons(seconds, (s) => {
			seconds = s;
			onRange(s);
			update();
		})), place);
	const series = (v) => [
		{label: 'allowed', color: 'allowed', kind: 'area', values: v[0], width: 1.5},
		{label: 'denied', color: 'denied', kind: 'area', values: v[1], width: 1.5},
		{label: 'shadow denials (not in the total)', color: 'shadow', kind: 'line', values: v[2], dash: [5, 3], width: 1.5},
		{label: 'degraded', color: 'degraded', kind: 'line', values: v[3], dash: [2, 2], width: 1.5},
	];
	const spec = () => {
		const {x, values, range} = live.columns(seconds);
		return {x, xRange: range, series: series(values), marks: restartMarks(live, range), summary: summaryOf(live)};
	};
	const drawn = chart(place, {...spec(), title: '', stacked: true, height: 260, sync: 'overview', empty: 'Waiting for the first second…', y: {least: 5, label: 'requests/s'}});
	const update = () => drawn.update(spec());
	return {node, update, destroy: drawn.destroy.bind(drawn)};
}

function summaryOf(live) {
	const s = live.sums(minute);
	if (!s.seconds) return 'Requests per second; no data yet.';
	return `Requests per second. In the last minute ${num(s.allowed)} were allowed, ${num(s.denied)} denied, ` +
		`${num(s.shadow)} would have been denied by shadow rules, ${num(s.degraded)} were decided without the store.`;
}

const percentiles = ['p50', 'p95', 'p99'];

export function latencyChart(live) {
	let seconds = ranges[0][0];
	let what = 'decisions';
	let hasStore = null;
	const place = h('div');
	const figures = h('div', {class: 'latency-now'});
	const choice = h('div', {class: 'segmented', role: 'group', 'aria-label': 'Latency of', hidden: true});
	const node = h('section', {class: 'card over-latency'}, h('div', {class: 'card-head'}, h('h2', null, 'Latency'), choice), figures, place);
	const columns = () => (what === 'store' ? [7, 8, 9] : [4, 5, 6]);
	const spec = () => {
		const {x, values, range} = live.columns(seconds);
		const colors = ['a', 'b', 'c'];
		return {x, xRange: range, marks: restartMarks(live, range), summary: `Latency of ${what}: 50th, 95th and 99th percentiles.`,
			series: columns().map((c, i) => ({label: percentiles[i], color: colors[i], kind: i === 0 ? 'area' : 'line', values: values[c], dash: i === 2 ? [4, 3] : undefined, width: 1.5}))};
	};
	const drawn = chart(place, {...spec(), title: '', height: 234, sync: 'overview', empty: 'No measurements in this time. One request in 16 is measured.', y: {format: dur, label: 'time per request'}});
	const choose = (w) => {
		what = w;
		press(choice, (b) => b.dataset.of === w);
	};
	choice.append(...['decisions', 'store'].map((w) => h('button', {type: 'button', dataset: {of: w}, onclick: () => {
		choose(w);
		update();
	}}, w === 'store' ? 'Store' : 'Decisions')));
	const shown = percentiles.map(() => h('strong'));
	figures.append(...percentiles.map((name, i) => h('div', null, h('span', {class: 'muted'}, `${name} `), shown[i])));
	const update = () => {
		const known = live.samples.some((s) => s[8] !== null && s[8] !== undefined);
		if (known !== hasStore) {
			hasStore = known;
			choice.hidden = !known;
			if (!known) choose('decisions');
		}
		shown.forEach((node, i) => {
			node.textContent = dur(latest(live, columns()[i] + 1));
		});
		drawn.update(spec());
	};
	choose(what);
	return {node, update, destroy: drawn.destroy.bind(drawn), range(s) {
		seconds = s;
		update();
	}};
}

// latest returns the mean of the latest measurements.
function latest(live, column) {
	const known = live.samples.slice(-now).map((s) => s[column]).filter((v) => v !== null && v !== undefined);
	return known.length ? known.reduce((a, b) => a + b, 0) / known.length : null;
}
