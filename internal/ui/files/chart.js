// SPDX-License-Identifier: Apache-2.0
//
// Charts, drawn by uPlot. A separate script defines this global.
//
//   chart(container, spec) → {update(changes), destroy(), node}
//     spec: series [{label, color, kind: line|area|bars|points|steps, values, width, dash, scale}] (null: a gap),
//       x (Unix seconds, or seconds), xKind: clock|seconds, xRange [from, to], days (true: show the day with the time),
//       y {min, max, least (the lowest end of the axis), label, format (default: whole numbers)},
//       scales {name: like y} (axes at the right, for series with scale: name), height, stacked (true: areas; 'bars': bars as well),
//       utc (show clock times in UTC, with the day),
//       marks [{x, y, color, shape: tick|dot|cross|line, row, label}] (without y: in rows at the bottom),
//       bands [{from, to, low, high, color, label}] (from and to on x; low and high on y), sync (a name: cursors move
//       together), empty (text for a chart without data), title, summary (a sentence for screen readers)
//     update takes any part of a spec and keeps the rest.
//   sparkline(container, values, {color, max}) → {update(values), node}; values that are all 0 draw nothing
//   bar(part, all, {color, label}) → node

import {h, svg, replace} from './dom.js';
import {onTheme} from './palette.js';
import {plotData, plotOptions} from './plot.js';
import {chartTip, chartWords} from './charttip.js';
import {chartTable} from './charttable.js';

export function chart(container, spec) {
	return new Chart(container, spec);
}

class Chart {
	constructor(container, spec) {
		this.spec = {height: 220, xKind: 'clock', y: {}, marks: [], bands: [], ...spec};
		this.build();
		container.append(this.node);
		this.offTheme = onTheme(() => this.plot?.redraw(true, true));
		this.sizes = new ResizeObserver(() => this.resize());
		this.sizes.observe(this.area);
		this.draw();
	}

	build() {
		const s = this.spec;
		this.caption = h('figcaption', {class: 'chart-head'});
		this.area = h('div', {class: 'chart-plot', role: 'img', tabindex: '0', style: {height: `${s.height}px`},
			onkeydown: (e) => this.key(e), onblur: () => this.leave()});
		this.emptyNote = h('div', {class: 'chart-empty', hidden: true});
		this.tip = h('div', {class: 'chart-tip', hidden: true});
		this.spoken = h('p', {class: 'visually-hidden', 'aria-live': 'polite'});
		this.table = chartTable();
		this.area.append(this.emptyNote, this.tip);
		this.node = h('figure', {class: 'chart'}, this.caption, this.area, this.spoken, this.table.node);
		this.head();
	}

	head() {
		const {title, y, series} = this.spec;
		const legend = h('ul', {class: 'chart-legend'}, series.map((s) => h('li', null, swatch(s), s.label)));
		replace(this.caption, title && h('span', {class: 'chart-title'}, title),
			y.label && h('span', {class: 'chart-unit'}, y.label), legend, this.table.toggle);
	}

	update(changes) {
		const before = shapeOf(this.spec);
		this.spec = {...this.spec, ...changes};
		if (changes.height) this.area.style.height = `${changes.height}px`;
		if (shapeOf(this.spec) !== before) {
			this.plot?.destroy();
			this.plot = null;
			this.head();
		}
		this.draw();
	}

	draw() {
		const {spec} = this;
		const data = plotData(spec);
		const none = spec.series.every((s) => s.values.every((v) => v === null || v === undefined));
		this.emptyNote.hidden = !none;
		this.emptyNote.textContent = none ? spec.empty ?? 'Nothing to show yet.' : '';
		this.area.setAttribute('aria-label', [spec.title, spec.summary].filter(Boolean).join(': ') || 'chart');
		this.table.update(spec);
		if (this.plot) {
			this.plot.setData(data, true);
		} else if (this.width() > 0) {
			this.plot = new uPlot(plotOptions(this, this.width()), data, this.area);
		}
	}

	width() {
		return Math.floor(this.area.clientWidth);
	}

	resize() {
		const width = this.width();
		if (width <= 0) return;
		if (!this.plot) this.draw();
		else if (this.plot.width !== width || this.plot.height !== this.spec.height) {
			this.plot.setSize({width, height: this.spec.height});
		}
	}

	// The plot calls pointed when its cursor moves.
	pointed(plot) {
		chartTip(this.tip, this.spec, plot);
	}

	leave() {
		this.plot?.setCursor({left: -10, top: -10});
	}

	key(e) {
		const last = this.spec.x.length - 1;
		if (!this.plot || last < 0) return;
		const at = this.plot.cursor.idx;
		const by = e.shiftKey ? 10 : 1;
		const next = {ArrowLeft: (at ?? last + 1) - by, ArrowRight: (at ?? -1) + by, Home: 0, End: last}[e.key];
		if (e.key === 'Escape') this.leave();
		if (next === undefined) return;
		e.preventDefault();
		const i = Math.max(0, Math.min(last, next));
		this.plot.setCursor({left: this.plot.valToPos(this.spec.x[i], 'x'), top: this.plot.over.clientHeight / 2});
		this.spoken.textContent = chartWords(this.spec, i);
	}

	destroy() {
		this.offTheme();
		this.sizes.disconnect();
		this.plot?.destroy();
		this.node.remove();
	}
}

// shapeOf identifies everything except the data; a change needs a new plot.
function shapeOf(spec) {
	return JSON.stringify([spec.title, spec.xKind, spec.stacked, spec.sync, spec.y.label, Object.keys(spec.scales ?? {}),
		spec.height, spec.series.map((s) => [s.label, s.color, s.kind, s.width, s.dash, s.scale])]);
}

export function swatch({color, kind = 'line', dash}) {
	return h('span', {class: `swatch swatch-${kind}${dash ? ' swatch-dash' : ''}`, style: {'--c': `var(--chart-${color})`},
		'aria-hidden': 'true'});
}

export function sparkline(container, values, {color = 'level', max = 0} = {}) {
	const wide = 100;
	const high = 28;
	const line = svg('path', {class: 'spark-line'});
	const area = svg('path', {class: 'spark-area'});
	const node = svg('svg', {class: 'spark', viewBox: `0 0 ${wide} ${high}`, preserveAspectRatio: 'none', 'aria-hidden': 'true',
		style: {'--c': `var(--chart-${color})`}}, area, line);
	const update = (next) => {
		const top = Math.max(max, ...next.map((v) => v ?? 0)) || 1;
		let d = '';
		let down = false;
		const fills = [];
		next.forEach((v, i) => {
			const x = (i * wide / Math.max(1, next.length - 1)).toFixed(2);
			if (v === null || v === undefined) {
				down = false;
				return;
			}
			const y = (high - 1.5 - (v / top) * (high - 4)).toFixed(2);
			d += `${down ? 'L' : 'M'}${x} ${y}`;
			if (!down) fills.push([]);
			fills.at(-1).push([x, y]);
			down = true;
		});
		if (!next.some(Boolean)) fills.length = 0; // no traffic: draw nothing
		line.setAttribute('d', fills.length ? d : '');
		area.setAttribute('d', fills.map((f) => `M${f[0][0]} ${high}${f.map((p) => `L${p[0]} ${p[1]}`).join('')}L${f.at(-1)[0]} ${high}Z`).join(''));
	};
	update(values);
	container.append(node);
	return {update, node};
}

export function bar(part, all, {color = 'level', label = ''} = {}) {
	const share = all > 0 ? Math.max(0, Math.min(1, part / all)) : 0;
	const said = label ? {role: 'img', 'aria-label': label} : {'aria-hidden': 'true'};
	return h('span', {class: 'bar', style: {'--c': `var(--chart-${color})`}, ...said},
		h('span', {class: 'bar-part', style: {width: `${(100 * share).toFixed(2)}%`}}));
}
