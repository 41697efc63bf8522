// SPDX-License-Identifier: Apache-2.0
//
// The lists of the overview. Each function returns {node, update(), destroy()}.
//
//   busiestRules(live)  the rules with the most traffic in the last minute
//   topDenied(live)     the keys with the most denials

import {h, keyNode, replace, show} from '../ui/dom.js';
import {ago, num, pct, rate} from '../ui/format.js';
import {keyed} from '../ui/keyed.js';
import {bar} from '../ui/chart.js';
import {get} from '../shell/api.js';

const mostRules = 8;
const mostKeys = 8;
const rulesEvery = 2000; // milliseconds; faster changes of the order are unreadable
const keysEvery = 4000;
const minute = 60;
const together = new Map([['(none)', 'no rule'], ['(other)', 'other rules']]); // as in /metrics

export function busiestRules(live) {
	const body = h('tbody');
	const note = h('p', {class: 'empty', hidden: true}, 'No rule has decided anything in the last minute.');
	const table = h('table', {class: 'table over-rules'}, h('caption', {class: 'visually-hidden'}, 'Rules with the most traffic in the last minute'),
		h('thead', null, h('tr', null, h('th', {scope: 'col'}, 'Rule'), h('th', {scope: 'col', class: 'num wide-only'}, 'Allowed'),
			h('th', {scope: 'col', class: 'num'}, 'Denied'), h('th', {scope: 'col', class: 'num wide-only'}, 'Shadow'), h('th', {scope: 'col'}, 'Share denied'))), body);
	const node = h('section', {class: 'card card-flush'}, h('div', {class: 'card-head'}, h('h2', null, 'Busiest rules'),
		h('span', {class: 'hint'}, 'last minute'), h('a', {class: 'btn btn-ghost btn-small', href: '#/rules'}, 'All rules')), h('div', {class: 'table-wrap', tabindex: '-1'}, table), note);
	const rows = keyed(body, {id: (r) => r.name, make: (r) => ruleRow(r.name)});
	let drawn = 0;
	const update = () => {
		if (live.state) node.style.setProperty('--rows', String(Math.min(live.state.policy.rules, mostRules)));
		if (Date.now() - drawn < rulesEvery && body.childElementCount > 0) return;
		drawn = Date.now();
		const seconds = live.ruleSeconds(minute);
		const list = Object.entries(live.rules(minute)).sort(([a, x], [b, y]) => (y[0] + y[1]) - (x[0] + x[1]) || a.localeCompare(b)).slice(0, mostRules);
		rows(list.map(([name, counts]) => ({name, counts, seconds})));
		table.hidden = list.length === 0;
		note.hidden = list.length > 0;
	};
	return {node, update, destroy() {}};
}

function ruleRow(name) {
	const [allowed, denied, shadow, share, meter] = [h('td', {class: 'num wide-only'}), h('td', {class: 'num'}), h('td', {class: 'num wide-only'}), h('span', {class: 'share-text'}), h('span', {class: 'share-meter'})];
	const whose = together.has(name) ? h('span', {class: 'rule-link muted'}, together.get(name))
		: h('a', {class: 'rule-link', href: `#/rules/${encodeURIComponent(name)}`}, show(name, 80));
	const node = h('tr', null, h('th', {scope: 'row'}, whose), allowed, denied, shadow,
		h('td', null, h('span', {class: 'share'}, meter, share)));
	let part = null;
	const update = ({counts: [a, d, s], seconds}) => {
		allowed.textContent = rate(a / seconds);
		denied.textContent = d ? rate(d / seconds) : '–';
		shadow.textContent = s ? rate(s / seconds) : '–';
		share.textContent = pct(d, a + d);
		if (!part) {
			replace(meter, bar(d, a + d, {color: 'denied'}));
			part = meter.querySelector('.bar-part');
		}
		part.style.width = `${(100 * d / Math.max(1, a + d)).toFixed(2)}%`;
	};
	return {node, update};
}

export function topDenied(live, ctx) {
	const list = h('ol', {class: 'plain top-keys'});
	const rows = keyed(list, {id: (k) => `${k.limit ?? k.rule}\n${k.key}`, make: keyRow});
	const note = h('div', {class: 'empty', hidden: true});
	const masked = h('p', {class: 'hint top-note', hidden: true}, 'Keys are masked. To see them, you need the role operate.');
	const node = h('section', {class: 'card card-flush'}, h('div', {class: 'card-head'}, h('h2', null, 'Most denied keys'), h('span', {class: 'hint'}, 'last minute'),
		h('a', {class: 'btn btn-ghost btn-small', href: '#/keys?kind=denied'}, 'All keys')), list, note, masked);
	const control = new AbortController();
	const ask = async () => {
		if (document.hidden || live.connection !== 'live') return;
		try {
			const top = await get(`v1/top?kind=denied&limit=${mostKeys}`, {signal: control.signal});
			draw(top.keys ?? []);
			masked.hidden = !top.masked || !top.keys?.length;
		} catch (e) {
			if (e.name === 'AbortError') return;
			if (list.children.length === 0) say('Not available', e.message);
		}
	};
	const say = (title, text) => {
		note.hidden = false;
		replace(note, h('h3', null, title), h('p', null, text));
	};
	const draw = (keys) => {
		const most = Math.max(1, ...keys.map((k) => k.count));
		rows(keys.map((k) => ({...k, most, said: `rule ${show(k.limit ?? k.rule, 64)}, ${ago(k.last)}`})));
		note.hidden = keys.length > 0;
		if (keys.length === 0) say('No denied keys', 'Keys appear here when a rule denies them.');
	};
	if (ctx.me.features.top) ask();
	const timer = setInterval(ask, keysEvery);
	const off = live.on('connection', ask);
	return {node, update() {}, destroy() {
		control.abort();
		clearInterval(timer);
		off();
	}};
}

function keyRow(k) {
	const [count, rule, meter] = [h('span', {class: 'top-key-count'}), h('span', {class: 'top-key-rule'}), bar(k.count, k.most, {color: 'denied'})];
	const node = h('li', null, h('a', {class: 'top-key', href: `#/key?${new URLSearchParams({key: k.key, rule: k.rule})}`},
		h('span', {class: 'top-key-name'}, keyNode(k.parts)), count, rule, meter));
	return {node, update(now) {
		count.textContent = num(now.count);
		rule.textContent = now.said;
		meter.querySelector('.bar-part').style.width = `${(100 * now.count / now.most).toFixed(2)}%`;
	}};
}
