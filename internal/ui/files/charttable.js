// SPDX-License-Identifier: Apache-2.0
//
// A chart as a table, for screen readers and for exact numbers. The table is always in the page, hidden until the user
// opens it, and changes only every few seconds, so that it stays readable.
//
//   chartTable() → {node, toggle (a button), update(spec)}

import {h, replace, svg} from './dom.js';
import {chartValue, chartX} from './charttip.js';

const mostTableRows = 200; // for a whole histogram
const fewTableRows = 60; // for longer data, such as the seconds of a live chart
const tableAge = 5000; // milliseconds

export function chartTable() {
	let drawn = 0;
	let shape = '';
	let spec = null;
	const table = h('table', {class: 'table chart-rows'});
	const node = h('div', {class: 'chart-data visually-hidden'}, table);
	const draw = () => {
		drawn = Date.now();
		replace(table, tableCaption(spec), tableHead(spec), h('tbody', null, tableRows(spec)));
	};
	const toggle = h('button', {type: 'button', class: 'btn btn-ghost btn-small chart-toggle', 'aria-expanded': 'false',
		'aria-label': 'Show as table', title: 'Show as table', onclick: () => {
			const open = node.classList.toggle('visually-hidden') === false;
			toggle.setAttribute('aria-expanded', String(open));
			if (open) node.setAttribute('tabindex', '0');
			else node.removeAttribute('tabindex');
			draw();
		}}, tableIcon());
	const update = (next) => {
		spec = next;
		const now = `${spec.title}|${spec.series.map((s) => s.label).join('|')}|${spec.x.length > 0}`;
		if (now !== shape || Date.now() - drawn >= tableAge) draw();
		shape = now;
	};
	return {node, toggle, update};
}

function tableIcon() {
	return svg('svg', {viewBox: '0 0 16 16', fill: 'none', stroke: 'currentColor', 'stroke-width': '1.3', 'aria-hidden': 'true'},
		svg('path', {d: 'M2 3h12v10H2zM2 6.3h12M2 9.7h12M6.5 6.3V13'}));
}

function tableCaption(spec) {
	const said = [spec.title, spec.summary].filter(Boolean).join(': ') || 'Values of the chart';
	const every = rowsApart(spec);
	return h('caption', {class: 'visually-hidden'}, every > 1 ? `${said} One row in ${every} is shown.` : said);
}

function tableHead(spec) {
	const unit = spec.y?.label ? `, ${spec.y.label}` : '';
	return h('thead', null, h('tr', null, h('th', {scope: 'col'}, 'Time'),
		spec.series.map((s) => h('th', {scope: 'col', class: 'num'}, s.label + (s.scale && s.scale !== 'y' ? '' : unit)))));
}

// rowsApart is the distance between rows: 1 if all values have a row. A histogram needs every row; a live chart does not.
function rowsApart({x}) {
	return x.length <= mostTableRows ? 1 : Math.ceil(x.length / fewTableRows);
}

// Rows are evenly spaced, the newest first.
function tableRows(spec) {
	const every = rowsApart(spec);
	const rows = [];
	for (let i = spec.x.length - 1; i >= 0; i -= every) {
		rows.push(h('tr', null, h('th', {scope: 'row'}, chartX(spec, spec.x[i])),
			spec.series.map((s) => h('td', {class: 'num'}, chartValue(spec, s, s.values[i])))));
	}
	return rows;
}
