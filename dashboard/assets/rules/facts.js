// SPDX-License-Identifier: Apache-2.0
//
//   ruleFacts(rule)      what a rule does where it applies, as a list of facts
//   limitCard(limit, i, limits)  one of a rule's limits with all of its numbers
//   overrideList(list)   exceptions from the rules

import {h, show} from '../ui/dom.js';
import {ago, dateTime, dur, tokens} from '../ui/format.js';
import {whose} from './words.js';

const missing = {
	skip: 'the rule does not apply', deny: 'the request is denied', empty: 'it counts as empty',
};
const without = {
	open: 'let through', closed: 'denied', local: 'decided by a bucket in the process',
};

export function ruleFacts(rule) {
	const facts = [
		['Buckets', whose(rule)],
		rule.limit_keys.length > 0 && ['If the key is missing', missing[rule.on_missing] ?? rule.on_missing],
		['Without the store', `${without[rule.on_store_error] ?? rule.on_store_error}, after ${dur(rule.deadline)}`],
		rule.headers && ['Headers', rule.headers],
		rule.jitter && ['Jitter', rule.jitter],
		rule.slot_by && ['Slot by', h('code', null, show(rule.slot_by, 60))],
		...rule.limits.flatMap((l) => limitFacts(l, rule.limits.length > 1 ? `${show(l.name.split('/').pop(), 40)}: ` : '')),
	];
	return factList(facts);
}

function factList(facts) {
	return h('dl', {class: 'facts'}, facts.filter(Boolean).map(([term, ...said]) => [h('dt', null, term), h('dd', null, ...said)]));
}

// limitFacts are what the words of a limit do not say.
function limitFacts(l, before) {
	const words = l.words.split(': ').slice(1).join(': ');
	return [
		[`${before || 'Limit: '}${l.words.split(': ')[0]}`, words],
		(l.cost.source || Number(l.cost.default) !== 1) && [`${before}Cost`, costWords(l.cost)],
		l.stages.length > 0 && [`${before}Stages`, stageWords(l.stages)],
	];
}

function costWords(c) {
	if (!c.source) return `${tokens(c.default)} a request`;
	const bounds = [c.min !== null && `at least ${tokens(c.min)}`, c.max !== null && `at most ${tokens(c.max)}`].filter(Boolean).join(', ');
	return [h('code', null, show(c.source, 60)), ` says it${bounds ? `: ${bounds}` : ''}; ${tokens(c.default)} if it does not`];
}

function stageWords(stages) {
	return h('ul', {class: 'plain'}, stages.map((s) => h('li', null, `from ${s.at} used: `, s.delay > 0 ? `each request waits ${dur(s.delay)}` : 'warned')));
}

export function limitCard(l, _, all) {
	const [algorithm, ...words] = l.words.split(': ');
	const facts = [
		['Capacity', tokens(l.capacity)], ['Rate', l.rate], Number(l.queue) > 0 && ['Queue', tokens(l.queue)], ['Full after', dur(l.full_after)],
		['Cost', costWords(l.cost)], l.stages.length > 0 && ['Stages', stageWords(l.stages)], l.shards > 1 && ['Shards', String(l.shards)], l.leased && ['Leased', 'yes'],
	];
	return h('section', {class: 'limit-card'}, h('div', {class: 'row'}, all.length > 1 && h('h3', {class: 'limit-name'}, show(l.name, 100)), h('span', {class: 'badge'}, algorithm)),
		h('p', {class: 'limit-says'}, words.join(': ')), factList(facts));
}

const actions = {
	block: ['badge-denied', 'blocks'], allow: ['badge-allowed', 'lets pass'], limit: ['badge-info', 'other limit'], shadow: ['badge-shadow', 'shadow'],
	break_glass: ['badge-degraded', 'break glass'],
};

export function overrideList(list) {
	return h('ul', {class: 'override-list plain'}, list.map((o) => {
		const [color, word] = actions[o.action] ?? ['', o.action];
		return h('li', null, h('span', {class: `badge ${color}`}, word), ' ', h('strong', null, show(o.id, 64)), ' ',
			h('span', {class: 'mono', dir: 'ltr'}, show(o.about, 160)),
			h('span', {class: 'muted'}, ` · ${show(o.reason, 256)}${o.author ? ` · ${show(o.author, 128)}` : ''} · ends `, h('time', {datetime: o.expires, title: dateTime(o.expires)}, ago(o.expires))));
	}));
}
