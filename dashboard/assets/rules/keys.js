// SPDX-License-Identifier: Apache-2.0
//
// The most limited keys of a rule.
//
//   tightKeys(rule, limit)  {node, start(), stop()}: the most denied keys and the keys near the limit; refreshed every
//                           few seconds between start and stop

import {h} from '../ui/dom.js';
import {keyed} from '../ui/keyed.js';
import {num} from '../ui/format.js';
import {get} from '../shell/api.js';
import {me} from '../shell/session.js';
import {keyHref, keyParts} from '../keys/table.js';

const every = 3000; // milliseconds

export function tightKeys(rule, limit) {
	const kinds = (rule.mode === 'shadow' ? ['shadow', 'near'] : ['denied', 'near']).map((kind) => ({kind, ...keyList(kind, limit)}));
	const said = h('p', {class: 'muted small', role: 'status'});
	const heads = {denied: 'Most denied', near: 'Near limit', shadow: 'Would be denied'};
	const node = h('div', {class: 'tight'}, kinds.map(({kind, list}) => h('section', {class: 'tight-kind'},
		h('div', {class: 'tight-head'}, h('h3', null, heads[kind]), h('a', {href: `#/keys?${new URLSearchParams({kind, rule: rule.name})}`, class: 'small'}, 'show all',
			h('span', {class: 'visually-hidden'}, `: ${heads[kind]}`))), list)), said);
	let timer = 0;
	let running = false;
	const ask = async () => {
		clearTimeout(timer);
		if (!running || document.hidden) return;
		try {
			const tops = await Promise.all(kinds.map(({kind}) => get(`v1/top?${new URLSearchParams({kind, rule: rule.name, limit: String(limit)})}`)));
			said.textContent = '';
			kinds.forEach(({update}, i) => update(tops[i]));
		} catch (e) {
			said.textContent = e.message;
		}
		if (running) timer = setTimeout(ask, every);
	};
	const seen = () => document.hidden || ask();
	return {
		node: me().features.top ? node : h('p', {class: 'muted small'}, 'This server does not count keys.'),
		start() {
			if (running || !me().features.top) return;
			running = true;
			document.addEventListener('visibilitychange', seen);
			ask();
		},
		stop() {
			running = false;
			clearTimeout(timer);
			document.removeEventListener('visibilitychange', seen);
		},
	};
}

const none = {denied: 'No denied keys.', near: 'No keys near the limit.', shadow: 'No keys that would be denied.'};

// keyList reserves space for all rows, so that the content below does not move.
function keyList(kind, limit) {
	const list = h('ol', {class: 'tight-list plain', style: {'--rows': String(limit)}});
	const rows = keyed(list, {id: (k) => `${k.limit}\n${k.key}`, make: (k) => (k.none ? {node: h('li', {class: 'muted'}, k.none)} : keyRow(k, kind))});
	return {list, update: (top) => rows(top.keys.length === 0 ? [{none: none[kind]}] : top.keys.map((k) => ({...k, masked: top.masked})))};
}

function keyRow(key, kind) {
	const count = h('span', {class: `tight-count ${kind}`, title: 'in the last minute'});
	return {node: h('li', null, h('a', {href: keyHref(key), class: 'tight-key'}, keyParts(key)), count), update(k) {
		count.textContent = num(k.count);
	}};
}
