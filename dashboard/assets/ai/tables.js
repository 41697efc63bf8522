// SPDX-License-Identifier: Apache-2.0

// The tables of the page AI. Each is {node, update(items)}.

import {h, show} from '../ui/dom.js';
import {ago, dateTime, num, pct, tokens} from '../ui/format.js';
import {keyed} from '../ui/keyed.js';
import {keyHref, keyParts, waitText} from '../keys/table.js';
import {resetKey, whyNot} from '../overrides/actions.js';

// aiTable returns a table with rows that change in place. A column is {label, number, text(item)} or {label, node(item)}.
function aiTable({caption, columns, id}) {
	const body = h('tbody', {role: 'rowgroup'});
	const rows = keyed(body, {id, make: () => makeRow(columns)});
	const head = h('tr', {role: 'row'}, columns.map((c) => h('th', {scope: 'col', role: 'columnheader', class: c.number ? 'num' : null}, c.label)));
	const node = h('table', {class: 'table ai-table', role: 'table'}, h('caption', {class: 'visually-hidden'}, caption), h('thead', {role: 'rowgroup'}, head), body);
	return {node, update: rows};
}

function makeRow(columns) {
	const cells = columns.map((c, i) => h(i === 0 ? 'th' : 'td', {role: i === 0 ? 'rowheader' : 'cell', scope: i === 0 ? 'row' : null, class: c.number ? 'num' : null, dataset: {label: c.label}}));
	let made = false;
	return {
		node: h('tr', {role: 'row'}, cells),
		update(item) {
			columns.forEach((c, i) => {
				if (c.text) set(cells[i], c.text(item));
				else if (!made || c.changes) cells[i].replaceChildren(...[c.node(item)].flat().filter(Boolean));
			});
			made = true;
		},
	};
}

function set(node, text) {
	if (node.textContent !== text) node.textContent = text;
}

// total returns the tokens of a model.
export function total(m) {
	return m.input + m.cached + m.cache_write + m.output + m.reasoning;
}

const classes = [['Input', 'input'], ['Cached', 'cached'], ['Cache write', 'cache_write'], ['Output', 'output'], ['Reasoning', 'reasoning']];

// modelTable lists the tokens of models. It has a column for each class of tokens in use.
export function modelTable(used, money) {
	const columns = [
		{label: 'Model', text: (m) => show(m.model, 80)},
		{label: 'Requests', number: true, text: (m) => num(m.reported + m.estimated + m.unknown)},
		...classes.filter(([, name]) => used(name)).map(([label, name]) => ({label, number: true, text: (m) => num(m[name])})),
		{label: 'Tokens', number: true, text: (m) => num(total(m))},
	];
	if (money) columns.push({label: money, number: true, text: (m) => tokens(m.money)});
	return aiTable({caption: 'Tokens by model', columns, id: (m) => m.model});
}

// classesOf returns the classes of tokens that a table of models needs.
export function classesOf(models) {
	return classes.map(([, name]) => name).filter((name) => name === 'input' || name === 'output' || models.some((m) => m[name] > 0));
}

// estimateTable compares the estimates of models with the usage that providers report.
export function estimateTable() {
	return aiTable({caption: 'Estimates by model', id: (m) => m.model, columns: [
		{label: 'Model', text: (m) => show(m.model, 80)},
		{label: 'Prompts', text: (m) => errorText(m.prompt)},
		{label: 'Answers', text: (m) => errorText(m.completion)},
		{label: 'Usage reported', number: true, text: (m) => pct(m.reported, m.reported + m.estimated + m.unknown)},
		{label: 'Streams cut', number: true, text: (m) => num(m.closed + m.failed)},
	]});
}

function errorText(e) {
	if (!e) return '–';
	const [error, bias] = [pct(e.error, 1), pct(Math.abs(e.bias), 1)];
	const way = e.bias < 0 ? 'low' : 'high';
	if (Math.abs(e.bias) > 0.9 * e.error) return `${error} too ${way}`;
	return `off by ${error}, on average ${bias} too ${way}`;
}

// ruleTable compares reserved with charged tokens.
export function ruleTable() {
	return aiTable({caption: 'Reserved and charged tokens by rule', id: (r) => r.rule, columns: [
		{label: 'Rule', node: (r) => h('a', {href: `#/rules/${encodeURIComponent(r.rule)}`}, show(r.rule, 64))},
		{label: 'Reserved', number: true, text: (r) => num(r.reserved)},
		{label: 'Charged', number: true, text: (r) => num(r.charged)},
		{label: 'Charged of reserved', number: true, text: (r) => (r.reserved > 0 ? pct(r.charged, r.reserved) : '–')},
	]});
}

function keyCell(k) {
	return [h('a', {href: keyHref(k), class: 'key-link'}, keyParts(k)), h('span', {class: 'key-limit'}, show(k.limit))];
}

// spendingTable lists the keys that spent most.
export function spendingTable(caption, unit) {
	return aiTable({caption, id: (k) => k.key, columns: [
		{label: 'Key', node: keyCell},
		{label: unit, number: true, text: (k) => (k.error > 0 ? `${num(k.spent - k.error)}–${num(k.spent)}` : unit === 'Tokens' ? num(k.spent) : tokens(k.spent))},
		{label: 'Requests', number: true, text: (k) => num(k.requests)},
		{label: 'Last', node: (k) => sinceNode(k.last), changes: true},
	]});
}

function sinceNode(at) {
	return h('time', {class: 'muted nowrap', datetime: at, title: dateTime(at)}, ago(at));
}

// stoppedTable lists keys that a circuit breaker or loop detection denies. done is called after a reset.
export function stoppedTable(caption, done) {
	return aiTable({caption, id: (k) => k.key, columns: [
		{label: 'Key', node: keyCell},
		{label: 'Allowed again', node: (k) => (k.ends === 0 ? h('span', {class: 'muted'}, 'now') : k.retry_after === null ? 'after a reset' :
			h('span', {class: 'denied nowrap ai-wait', dataset: {ends: k.ends}}, inText(k.ends))), changes: true},
		{label: 'Denials', number: true, text: (k) => num(k.denials)},
		{label: 'Last', node: (k) => sinceNode(k.last), changes: true},
		{label: 'Action', node: (k) => resetButton(k, done)},
	]});
}

function inText(ends, now) {
	const wait = waitText(ends, now);
	return wait === 'now' ? wait : `in ${wait}`;
}

function resetButton(k, done) {
	const why = whyNot(k);
	return h('button', {type: 'button', class: 'btn btn-small', 'aria-disabled': why ? 'true' : null, title: why || null, onclick: () => why || resetKey(k, done)}, 'Reset');
}

// tick updates the waits and the ages below a node.
export function tick(root, now) {
	for (const node of root.querySelectorAll('.ai-table time')) set(node, ago(node.dateTime, now));
	for (const node of root.querySelectorAll('.ai-wait')) set(node, inText(Number(node.dataset.ends), now));
}
