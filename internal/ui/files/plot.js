// SPDX-License-Identifier: Apache-2.0
//
// The uPlot options and data of a chart.
//
//   plotOptions(owner, width)  options for owner.spec; calls owner.pointed(plot) when the cursor moves
//   plotData(spec)             the columns; areas are summed up if the chart is stacked
//   clockTicks(values, step, utc)  labels of an axis of wall clock time

import {dur, num} from './format.js';
import {paint} from './palette.js';
import {drawBands, drawMarks} from './plotmarks.js';

const axisFont = '11px -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, system-ui, sans-serif';

// In a stacked chart areas stand on each other in their order, and with 'bars' bars do so, too. All other series stand on
// the axis.
const stands = (spec, s) => spec.stacked && (s.kind === 'area' || (s.kind === 'bars' && spec.stacked === 'bars'));

export function plotData(spec) {
	let below = null;
	const columns = spec.series.map((s) => {
		if (!stands(spec, s)) return s.values;
		const under = below;
		below = s.values.map((v, i) => (v === null || v === undefined || (under && under[i] === null) ? null : v + (under ? under[i] : 0)));
		return below;
	});
	return [spec.x, ...columns];
}

// An area is filled down to the area below it.
function plotBands(spec) {
	const areas = spec.series.flatMap((s, i) => (stands(spec, s) ? [i + 1] : []));
	return areas.slice(1).map((upper, i) => ({series: [upper, areas[i]]}));
}

export function plotOptions(owner, width) {
	const {spec} = owner;
	const sides = Object.keys(spec.scales ?? {});
	return {
		...(spec.utc ? {tzDate: (t) => uPlot.tzDate(new Date(t * 1000), 'Etc/UTC')} : {}),
		width, height: spec.height, padding: [10, sides.length ? 0 : 12, 0, 0],
		legend: {show: false},
		cursor: {move: snapped, drag: {x: false, y: false, setScale: false}, points: {size: 7, width: 2, fill: () => paint('surface')},
			...(spec.sync ? {sync: {key: spec.sync, scales: ['x', null]}} : {})},
		scales: {
			x: {time: spec.xKind !== 'seconds', range: (_, lo, hi) => xSpan(owner.spec, lo, hi)},
			y: {range: (_, lo, hi) => ySpan(owner.spec.y, lo, hi)},
			...Object.fromEntries(sides.map((n) => [n, {range: (_, lo, hi) => ySpan(owner.spec.scales[n], lo, hi)}])),
		},
		axes: [xAxis(spec), yAxis(() => owner.spec.y), ...sides.map((n) => ({...yAxis(() => owner.spec.scales[n]), scale: n, side: 1, grid: {show: false}}))],
		series: [{}, ...spec.series.map((s) => plotSeries(s, spec.stacked))],
		bands: plotBands(spec),
		hooks: {
			drawClear: [(u) => drawBands(u, owner.spec.bands ?? [])],
			draw: [(u) => drawMarks(u, owner.spec.marks ?? [])],
			setCursor: [(u) => owner.pointed(u)],
		},
	};
}

function xSpan(spec, lo, hi) {
	if (spec.xRange) return spec.xRange;
	if (lo === null || lo === undefined) return spec.xKind === 'seconds' ? [0, 1] : [Date.now() / 1000 - 60, Date.now() / 1000];
	if (lo === hi) return [lo - 0.5, hi + 0.5];
	const half = spec.series.some((s) => s.kind === 'bars') ? (spec.x[1] - spec.x[0]) / 2 : 0; // the outer bars stay whole
	return [lo - half, hi + half];
}

// The cursor snaps to values.
function snapped(u, left, top) {
	const i = left < 0 || u.data[0].length === 0 ? -1 : u.posToIdx(left);
	return [i < 0 ? left : u.valToPos(u.data[0][i], 'x'), top];
}

// An axis begins at zero unless y sets min, and ends a little above the data.
function ySpan(y = {}, lo, hi) {
	const from = y.min ?? Math.min(0, lo ?? 0);
	if (y.max !== undefined && y.max !== null) return [from, y.max];
	const top = Math.max(hi ?? 0, from);
	return [from, Math.max(top > from ? from + (top - from) * 1.12 : from + 1, y.least ?? -Infinity)];
}

function plotSeries({color, kind = 'line', width = 1.75, dash, scale = 'y'}, stacked) {
	const stroke = () => paint(color);
	// A value between two gaps has no line, so it is drawn as a point.
	const alone = (u, at, _, gaps) => (gaps?.length ? lonely(u.data[at]) : null);
	const made = {scale, width, dash, stroke, points: {show: false, size: width + 2, width: 0, fill: stroke, stroke, filter: alone}};
	const strength = stacked ? 0.55 : 0.16;
	if (kind === 'area') return {...made, fill: () => paint(color, strength)};
	if (kind === 'steps') return {...made, paths: uPlot.paths.stepped({align: 1})};
	if (kind === 'bars') return {...made, width: 0, points: {show: false}, fill: () => paint(color, 0.85), paths: uPlot.paths.bars({size: [0.75, 28]})};
	if (kind === 'points') {
		return {...made, paths: () => null, points: {show: true, size: 2 * width + 3, width: 0, fill: stroke, stroke}}; // all of them
	}
	return made;
}

function lonely(column) {
	const none = (v) => v === null || v === undefined;
	return [...column.keys()].filter((i) => !none(column[i]) && none(column[i - 1]) && none(column[i + 1]));
}

function axisLook() {
	return {stroke: () => paint('axis'), font: axisFont, grid: {stroke: () => paint('grid'), width: 1}, ticks: {show: false}};
}

const anySeconds = [1, 2, 5, 10, 15, 30, 60];
const wholeMinutes = [60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 604800, 2592000, 7776000, 31536000];

function xAxis(spec) {
	const values = spec.xKind === 'seconds' ?
		(_, splits) => spanTicks(splits) :
		(_, splits, __, ___, step) => clockTicks(splits, step, spec.utc);
	// Labels of whole minutes are short, so that more of them fit.
	const minutes = (lo, hi) => spec.xKind !== 'seconds' && hi - lo >= 180;
	const clock = spec.xKind === 'seconds' ? {} : {incrs: (_, __, lo, hi) => (minutes(lo, hi) ? wholeMinutes : anySeconds)};
	return {...axisLook(), ...clock, values, size: 28, gap: 6, space: (_, __, lo, hi) => (minutes(lo, hi) ? 44 : 66), grid: {show: false},
		border: {show: true, stroke: () => paint('grid'), width: 1}};
}

// Values without a format are counts, which have no fractions.
const wholeSteps = Array.from({length: 16}, (_, i) => [1, 2, 5].map((n) => n * 10 ** i)).flat();

function yAxis(of) {
	return {...axisLook(), ...(of()?.format ? {} : {incrs: wholeSteps}), scale: 'y', size: 52, gap: 8, space: 36,
		values: (u, splits) => splits.map((v) => (isBare(u) ? '' : (of()?.format ?? num)(Number(v.toPrecision(12)))))};
}

// Labels of one axis share a unit if it suits all of them.
function spanTicks(splits) {
	const top = Math.max(...splits.map(Math.abs));
	return splits.map((v) => {
		const tidy = Number(v.toFixed(6));
		return tidy === 0 ? '0' : top >= 1 && top < 60 ? `${tidy} s` : dur(tidy);
	});
}

// A plot without values has no useful scale.
function isBare(u) {
	return u.data.slice(1).every((column) => column.every((v) => v === null || v === undefined));
}

export function clockTicks(values, step, utc) {
	const two = (n) => String(n).padStart(2, '0');
	return values.map((v) => {
		const d = utc ? uPlot.tzDate(new Date(v * 1000), 'Etc/UTC') : new Date(v * 1000);
		const midnight = d.getHours() === 0 && d.getMinutes() === 0;
		if (step >= 86400 || (step >= 3600 && midnight)) return `${d.getDate()} ${d.toLocaleString('en', {month: 'short'})}`;
		return `${two(d.getHours())}:${two(d.getMinutes())}${step < 60 ? `:${two(d.getSeconds())}` : ''}`;
	});
}
