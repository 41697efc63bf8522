// SPDX-License-Identifier: Apache-2.0
//
//   ruleFacts(rule)      the effect of a rule as a list of facts
//   limitCard(limit, i, limits)  a limit of a rule with all of its numbers
//   overrideList(list)   the overrides of rules

import {h, show} from '../ui/dom.js';
import {ago, dateTime} from '../ui/format.js';
import {actionOf} from '../shell/vocabulary.js';
import {whose} from './words.js';

// The server provides the texts of the facts, so this file does not depend on policy fields.
export function ruleFacts(rule) {
	const named = (l) => (rule.limits.length > 1 ? `${show(l.name.split('/').pop(), 40)}: ` : '');
	return factList([['Buckets', whose(rule)], ...rows(rule.facts), ...rule.limits.flatMap((l) => [
		[`${named(l) || 'Limit: '}${l.words.split(': ')[0]}`, l.words.split(': ').slice(1).join(': ')],
		...rows(l.facts.filter((f) => f.notable), named(l))])]);
}

function rows(facts, before = '') {
	return facts.map((f) => [`${before}${f.label}`, show(f.value, 400)]);
}

function factList(facts) {
	return h('dl', {class: 'facts'}, facts.map(([term, ...said]) => [h('dt', null, term), h('dd', null, ...said)]));
}

export function limitCard(l, _, all) {
	const [algorithm, ...words] = l.words.split(': ');
	return h('section', {class: 'limit-card'}, h('div', {class: 'row'}, all.length > 1 && h('h3', {class: 'limit-name'}, show(l.name, 100)), h('span', {class: 'badge'}, algorithm)),
		h('p', {class: 'limit-says'}, words.join(': ')), factList(rows(l.facts)));
}

export function overrideList(list) {
	return h('ul', {class: 'override-list plain'}, list.map((o) => {
		const {color, verb} = actionOf(o.action);
		return h('li', null, h('span', {class: `badge badge-${color}`}, show(verb, 40)), ' ', h('strong', null, show(o.id, 64)), ' ',
			h('span', {class: 'mono', dir: 'ltr'}, show(o.about, 160)),
			h('span', {class: 'muted'}, ` · ${show(o.reason, 256)}${o.author ? ` · ${show(o.author, 128)}` : ''} · ends `, h('time', {datetime: o.expires, title: dateTime(o.expires)}, ago(o.expires))));
	}));
}
