// SPDX-License-Identifier: Apache-2.0
//
// The table of all requests of a lane.
//
//   requestTable(caption) → {node, update(run)}

import {h, replace} from '../ui/dom.js';
import {tokens} from '../ui/format.js';
import {exact} from './run.js';

const pageRows = 100;
const words = {allowed: 'allowed', waits: 'allowed, waits', denied: 'denied'};

export function requestTable(caption) {
	let run = null;
	let most = pageRows;
	let only = false;
	const body = h('tbody');
	const summary = h('p', {class: 'hint'});
	const more = h('button', {type: 'button', class: 'btn btn-small', onclick: () => {
		most += 5 * pageRows;
		draw();
	}}, 'Show more');
	const denied = h('input', {type: 'checkbox', onchange: () => {
		only = denied.checked;
		most = pageRows;
		draw();
	}});
	const heads = ['Request', 'At', 'Answer', 'Retry after', 'Wait', 'Left'];
	const table = h('table', {class: 'table'}, h('caption', {class: 'visually-hidden'}, caption),
		h('thead', null, h('tr', null, heads.map((t, i) => h('th', {scope: 'col', class: i === 2 ? '' : 'num'}, t)))), body);
	const node = h('details', {class: 'play-table', ontoggle: () => draw()}, h('summary', null, 'Requests'),
		h('label', {class: 'check'}, denied, 'Denied only'), h('div', {class: 'table-wrap', tabindex: '0', role: 'region', 'aria-label': caption}, table),
		h('div', {class: 'row'}, summary, more));

	function draw() {
		if (!node.open || !run) return;
		const rows = run.decisions.map((d, i) => [d, i]).filter(([d]) => !only || d.kind === 'denied');
		replace(body, rows.slice(0, most).map(([d, i]) => h('tr', {class: `play-row-${d.kind}`}, h('th', {scope: 'row', class: 'num'}, tokens(i + 1)), cell(exact(d.at)),
			h('td', null, h('span', {class: d.kind === 'waits' ? 'near' : d.kind}, words[d.kind]), d.attempt > 1 && h('span', {class: 'muted'}, ` (attempt ${d.attempt})`)),
			cell(d.kind !== 'denied' ? '' : d.retry === Infinity ? 'never' : exact(d.retry)), cell(d.wait > 0 ? exact(d.wait) : ''), cell(tokens(d.level)))));
		summary.textContent = rows.length > most ? `${tokens(most)} of ${tokens(rows.length)}` : `${tokens(rows.length)} in total`;
		more.hidden = rows.length <= most;
	}

	return {
		node,
		update(next) {
			run = next;
			most = pageRows;
			draw();
		},
	};
}

function cell(text) {
	return h('td', {class: 'num'}, text);
}
