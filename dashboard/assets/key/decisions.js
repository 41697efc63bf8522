// SPDX-License-Identifier: Apache-2.0

import {h} from '../ui/dom.js';
import {dur, tokens} from '../ui/format.js';

const MOST = 18; // rows
const EVERY = 400; // ms between redraws, however many decisions there are

const looks = {
	allowed: ['badge-allowed', '✓', 'allowed'], denied: ['badge-denied', '✕', 'denied'], shadow: ['badge-shadow', '◆', 'would be denied'],
	elsewhere: ['', '○', 'denied by another limit'],
};

// decisionTable shows the latest decisions of a bucket, newest first.
export function decisionTable() {
	const body = h('tbody');
	const empty = h('p', {class: 'decisions-empty muted'}, 'No decisions since you opened this page. New decisions appear here.');
	const table = h('table', {class: 'table decisions', hidden: true},
		h('caption', {class: 'visually-hidden'}, 'The latest decisions, newest first'),
		h('thead', null, h('tr', null, h('th', {scope: 'col'}, 'Time'), h('th', {scope: 'col'}, 'Decision'), h('th', {scope: 'col', class: 'num'}, 'Cost'),
			h('th', {scope: 'col', class: 'num'}, 'Left'), h('th', {scope: 'col', class: 'num'}, 'Retry after'))), body);
	let waiting = [];
	let drawn = 0;
	return {
		node: h('div', {class: 'decisions-place'}, empty, table),
		add(decision) {
			waiting.push(decision);
			waiting = waiting.slice(-MOST);
		},
		// draw adds the new decisions, at most once per EVERY.
		draw(now) {
			if (waiting.length === 0 || now - drawn < EVERY) {
				return;
			}
			drawn = now;
			body.prepend(...waiting.reverse().map(row));
			waiting = [];
			while (body.childElementCount > MOST) {
				body.lastChild.remove();
			}
			table.hidden = false;
			empty.hidden = true;
		},
	};
}

function row(d) {
	const [look, sign, words] = looks[d.kind];
	return h('tr', null,
		h('td', {class: 'nowrap'}, clock(d.t)),
		h('td', null, h('span', {class: `badge ${look}`}, h('span', {'aria-hidden': 'true'}, sign), words), d.degraded && h('span', {class: 'badge badge-degraded', title: 'decided without the store'}, 'degraded')),
		h('td', {class: 'num'}, tokens(d.cost)), h('td', {class: 'num'}, leftText(d.left)),
		h('td', {class: 'num'}, waitCell(d)));
}

// leftText has one decimal, so that numbers in a column align.
function leftText(left) {
	return left < 1e6 ? (Math.floor(left * 10) / 10).toFixed(1) : tokens(left);
}

function waitCell({kind, wait}) {
	if (kind === 'allowed') {
		return wait > 0 ? `starts in ${dur(wait)}` : '–';
	}
	return kind === 'elsewhere' ? '–' : wait === Infinity ? 'never' : dur(wait);
}

// clock returns a time of day in tenths of a second, because there are often several decisions per second.
function clock(t) {
	const d = new Date(t * 1000);
	const two = (n) => String(n).padStart(2, '0');
	return `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}.${Math.floor(d.getMilliseconds() / 100)}`;
}
