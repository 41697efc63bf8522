// SPDX-License-Identifier: Apache-2.0

import {h, replace, show} from '../ui/dom.js';
import {dateTime, num} from '../ui/format.js';
import {get} from '../shell/api.js';
import {copyLine} from '../shell/copy.js';
import {classesOf, estimateTable, modelTable, ruleTable, spendingTable, stoppedTable, tick, total} from '../ai/tables.js';

const EVERY = 3000; // ms between requests
const TICK = 1000; // ms between updates of a countdown

export default {
	title: 'AI',
	nav: 'ai',
	mount(root) {
		const made = view(() => look());
		const note = h('p', {class: 'denied', role: 'status'});
		replace(root, h('div', {class: 'stack'}, made.node, note));
		let timer = 0;
		let ended = false;
		const look = async () => {
			clearTimeout(timer);
			if (ended || document.hidden) return; // onVisible looks again
			try {
				const answer = await get('v1/ai');
				if (ended) return;
				note.textContent = '';
				made.update(answer, Date.now());
			} catch (err) {
				if (err.status === 404) {
					replace(made.node, blank('This server does not count tokens', 'To count them in your own program, pass counts of package aiusage to the API.'));
					return;
				}
				note.textContent = show(err.message, 300);
			}
			timer = ended ? 0 : setTimeout(look, EVERY);
		};
		const onVisible = () => document.hidden || look();
		document.addEventListener('visibilitychange', onVisible);
		const ticking = setInterval(() => tick(root, Date.now()), TICK);
		look();
		return () => {
			ended = true;
			clearTimeout(timer);
			clearInterval(ticking);
			document.removeEventListener('visibilitychange', onVisible);
		};
	},
};

function blank(title, ...hint) {
	return h('div', {class: 'card'}, h('div', {class: 'empty'}, h('h2', null, title), hint.map((line) => (line instanceof Node ? line : h('p', null, line)))));
}

// view returns the sections of the page. look gets new numbers.
function view(look) {
	const node = h('div', {class: 'stack'}, h('div', {class: 'skeleton ai-waiting'}));
	let shape = '';
	let parts = null;
	return {
		node,
		update(answer, came) {
			const {policy, models} = answer;
			const used = classesOf(models);
			const wanted = JSON.stringify([policy, used, models.length > 0, answer.masked]);
			if (wanted !== shape) { // the policy or the columns changed
				shape = wanted;
				parts = sections(answer, used, look);
				replace(node, parts.map((p) => p.node));
			}
			for (const p of parts) p.update(answer, came);
		},
	};
}

function sections({policy, models}, used, look) {
	const counts = policy.tokens || policy.money;
	const parts = [counts || models.length > 0 ? summary() : notCounting()];
	if (policy.circuit_breaker) parts.push(stopped('Open circuit breakers', 'No circuit breaker is open.', (a) => a.breakers, look));
	if (policy.loop_detection) parts.push(stopped('Loops in the last hour', 'No client repeated a request too often.', (a) => a.loops, look));
	if (!counts && models.length === 0) return parts;
	const money = policy.money ? policy.price_unit || 'Money' : '';
	parts.push(list('Models', 'No request to a language model has ended yet.', modelTable((name) => used.includes(name), money), (a) => a.models,
		policy.price_version && `prices of ${show(policy.price_version, 40)}${policy.price_date ? `, written on ${policy.price_date}` : ''}`));
	if (policy.tokens) parts.push(list('Keys with the most tokens', 'No key has spent tokens yet.', spendingTable('Keys with the most tokens', 'Tokens'), (a) => a.token_keys));
	if (policy.money) parts.push(list('Keys with the most money', 'No key has spent money yet.', spendingTable('Keys with the most money', money), (a) => a.money_keys));
	if (policy.tokens) parts.push(list('Reserved and charged tokens', 'No request is settled yet.', ruleTable(), (a) => a.rules));
	parts.push(list('Estimates', 'No estimate is compared with usage yet.', estimateTable(), (a) => a.models, 'with the ratio that the server learned'));
	return parts;
}

function summary() {
	const node = h('p', {class: 'lede'});
	return {node, update({models, since, masked}) {
		const requests = models.reduce((sum, m) => sum + m.reported + m.estimated + m.unknown, 0);
		const sum = models.reduce((all, m) => all + total(m), 0);
		replace(node, h('strong', {class: 'ai-total'}, num(sum)), ` tokens in ${num(requests)} ${requests === 1 ? 'request' : 'requests'} through this server since its start, ${dateTime(since)}.`,
			masked && [' ', h('span', {class: 'badge'}, 'masked'), ' To see keys, you need the role operate.']);
	}};
}

function notCounting() {
	return {node: blank('No rule of the policy counts tokens', 'A limit counts the tokens of language models with these fields:',
		copyLine('match: { "ai:model": "*" }\nalgorithm: token_bucket_llm\ntokens_per_minute: 20000'), 'doc/ai.md has complete policies.'), update() {}};
}

// list is a card with a table, or with a sentence while it has no rows.
function list(title, none, table, itemsOf, hint) {
	const empty = h('p', {class: 'muted ai-none'}, none);
	const node = h('section', {class: 'card card-flush', 'aria-label': title},
		h('div', {class: 'card-head'}, h('h2', null, title), hint && h('span', {class: 'hint'}, hint)), table.node, empty);
	return {node, update(answer) {
		const items = itemsOf(answer);
		table.node.hidden = items.length === 0;
		empty.hidden = items.length > 0;
		table.update(items);
	}};
}

function stopped(title, none, keysOf, look) {
	return list(title, none, stoppedTable(title, look), (answer) => keysOf(answer).map((k) => (
		{...k, masked: answer.masked, ends: k.retry_after === null ? Infinity : k.retry_after > 0 ? Math.round((Date.now() + k.retry_after * 1000) / 1000) * 1000 : 0})));
}
