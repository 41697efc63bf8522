// SPDX-License-Identifier: Apache-2.0
//
//   violationTable({link(values) → the fragment with these filters}) → {node, add(rows), waiting()}
//
// The table of violations. Each value is a link that filters by it.

import {h, show} from '../ui/dom.js';
import {dateTime, dur, num, time, tokens} from '../ui/format.js';
import {me} from '../shell/session.js';
import {words} from './filter.js';

const dayText = new Intl.DateTimeFormat('en-GB', {day: 'numeric', month: 'short'});
const others = '*'; // the key of rows beyond the server's limit

const columns = [
	{name: 'at', label: 'Time'},
	{name: 'denials', label: 'Denials', number: true},
	{name: 'rule', label: 'Rule'},
	{name: 'key', label: 'Key'},
	{name: 'client', label: 'Client'},
	{name: 'endpoint', label: 'Endpoint'},
	{name: 'retry', label: 'Retry after', number: true},
];

export function violationTable({link}) {
	const body = h('tbody', {role: 'rowgroup'});
	const head = h('thead', {role: 'rowgroup'}, h('tr', {role: 'row'}, columns.map((c) =>
		h('th', {scope: 'col', role: 'columnheader', class: c.number ? 'num' : null}, c.label))));
	const node = h('table', {class: 'table vio-table', role: 'table'}, h('caption', {class: 'visually-hidden'}, 'Denials, newest first'), head, body);
	return {
		node,
		add(rows) {
			body.append(...rows.flatMap((row) => rowOf(row, link)));
		},
		waiting: () => h('div', {class: 'vio-waiting', 'aria-hidden': 'true'}, Array.from({length: 8}, () => h('div', {class: 'skeleton'}, '.'))),
	};
}

function rowOf(row, link) {
	const more = h('tr', {role: 'row', class: 'vio-details', hidden: true});
	const toggle = h('button', {type: 'button', class: 'vio-toggle', 'aria-expanded': 'false', 'aria-label': `Details of ${dateTime(row.at)}`, onclick: () => {
		if (!more.firstChild) more.append(h('td', {role: 'cell', colspan: String(columns.length)}, details(row)));
		more.hidden = !more.hidden;
		toggle.setAttribute('aria-expanded', String(!more.hidden));
	}});
	const cells = {
		at: [toggle, h('time', {datetime: row.at, title: dateTime(row.at)}, time(row.at), h('span', {class: 'muted vio-day'}, dayText.format(new Date(row.at))))],
		denials: num(row.denials),
		rule: ruleCell(row, link),
		key: keyCell(row, link),
		client: clientCell(row, link),
		endpoint: row.endpoint === null ? dash() : only(link({endpoint: row.endpoint}), show(row.endpoint, 120), 'mono'),
		retry: row.retry_after === null ? 'never' : dur(row.retry_after),
	};
	const node = h('tr', {role: 'row'}, columns.map((c) => h('td', {role: 'cell', class: `col-${c.name}${c.number ? ' num' : ''}`, dataset: {label: c.label}},
		h('div', {class: 'vio-cell'}, cells[c.name]))));
	return [node, more];
}

function ruleCell(row, link) {
	return [h('span', {class: 'row vio-rule'}, only(link({rule: row.rule}), show(row.rule, 64), 'strong'), row.shadow && h('span', {class: 'badge badge-shadow'}, 'shadow')),
		h('span', {class: 'small muted'}, row.limit && row.limit !== row.rule && row.reason !== 'blocked' ? `${show(row.limit, 80)} · ` : '', words(row.reason))];
}

function keyCell(row, link) {
	if (row.key === null) return dash();
	if (row.key === others) return h('span', {class: 'muted', title: 'The server had more denied keys than it can record.'}, 'other keys');
	return only(link({key: row.key}), show(row.key, 120), 'key');
}

function clientCell(row, link) {
	if (row.address === null && row.user === null) return dash();
	return [row.address !== null && only(link({address: row.address}), show(row.address, 60), 'mono'),
		row.user !== null && h('span', {class: 'small'}, h('span', {class: 'muted'}, 'user '), only(link({user: row.user}), show(row.user, 80), 'mono'))];
}

function only(href, text, kind) {
	return h('a', {class: `vio-only ${kind}`, href}, h('bdi', {dir: 'ltr'}, text));
}

function dash() {
	return h('span', {class: 'muted'}, '–');
}

// details shows the remaining fields of a row.
function details(row) {
	const seconds = (Date.parse(row.last_at) - Date.parse(row.at)) / 1000;
	const facts = [
		['First', dateTime(row.at)],
		row.denials > 1 && ['Last', `${dateTime(row.last_at)}, ${dur(seconds)} later`],
		['Outcome', row.shadow ? 'allowed: the rule is in shadow mode' : 'denied'],
		['Limit', show(row.limit || '–', 128)],
		['Reason', show(row.reason, 64)],
		['Cost', `${tokens(row.cost)} ${row.cost === 1 ? 'token' : 'tokens'}${row.denials > 1 ? ' in total' : ''}`],
		row.tokens !== null && ['Bucket level', `${tokens(row.tokens)} ${row.tokens === 1 ? 'token' : 'tokens'} at the first denial`],
		['Retry after', row.retry_after === null ? 'never: waiting does not help' : `${dur(row.retry_after)}, at the first denial`],
		row.node && ['Server', show(row.node, 64)],
		['Row', String(row.id)],
	];
	const known = row.key !== null && row.key !== others && !row.key.startsWith('~') && me().features.top;
	return h('div', {class: 'vio-facts'},
		h('dl', {class: 'facts'}, facts.filter(Boolean).map(([name, value]) => [h('dt', null, name), h('dd', null, value)])),
		known && h('p', null, h('a', {href: `#/key?${new URLSearchParams({key: row.key, rule: row.rule})}`}, 'Show this key’s bucket')));
}
