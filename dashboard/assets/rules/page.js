// SPDX-License-Identifier: Apache-2.0
//
//   rulePage(root, tree, name, ctx)  shows one rule; returns a function that ends it

import {h, replace, show} from '../ui/dom.js';
import {exampleOf, explainInto} from '../explain/explaining.js';
import {limitCard, overrideList, ruleFacts} from './facts.js';
import {requestForm} from '../explain/form.js';
import {modeBadge, ruleHref, rulesOf, wanted} from './words.js';
import {tightKeys} from './keys.js';
import {trafficTiles} from './traffic.js';

export function rulePage(root, tree, name, ctx) {
	const rules = rulesOf(tree);
	const rule = rules.find((r) => r.name === name);
	if (!rule) {
		replace(root, h('div', {class: 'card empty'}, h('h2', null, 'There is no such rule'), h('p', null, `The policy in force has no rule ${show(name, 64)}.`), h('a', {class: 'btn', href: '#/rules'}, 'All rules')));
		return null;
	}
	const tiles = trafficTiles(rule);
	const keys = tightKeys(rule, 8);
	replace(root, h('div', {class: 'stack rule'}, head(rule), tiles.node, warned(rule, tree),
		h('div', {class: 'rule-cards'}, card('Limits', h('div', {class: 'rule-limits'}, rule.limits.map(limitCard))), card('Which requests', requests(rule, rules))),
		h('div', {class: 'rule-cards'}, card('Keys', keys.node), card('What it does', ruleFacts({...rule, limits: []}))),
		rule.overrides.length > 0 && card('Overrides', overrideList(rule.overrides)),
		h('section', {class: 'card', 'aria-label': 'Explain a request'}, h('div', {class: 'card-head'}, h('h2', null, 'Explain a request')), explainer(rule, tree))));
	const update = () => tiles.update(ctx.live);
	update();
	keys.start();
	const off = ctx.live.on('samples', update);
	return () => {
		off();
		keys.stop();
	};
}

function card(title, ...body) {
	return h('section', {class: 'card', 'aria-label': title}, h('div', {class: 'card-head'}, h('h2', null, title)), h('div', {class: 'stack-small'}, body));
}

function head(rule) {
	return h('div', {class: 'page-head'}, h('nav', {'aria-label': 'Back'}, h('a', {href: '#/rules', class: 'small'}, '‹ All rules')),
		h('div', {class: 'row'}, h('h1', null, show(rule.name, 64)), modeBadge(rule), rule.policy.id && h('span', {class: 'badge'}, `policy ${show(rule.policy.id, 64)}`),
			rule.fallback && h('span', {class: 'badge'}, 'for the rest')),
		rule.description && h('p', {class: 'lede'}, show(rule.description, 1024)));
}

function warned(rule, tree) {
	const list = tree.warnings.filter((w) => w.rule === rule.name);
	return list.map((w) => h('div', {class: `notice ${w.note ? '' : 'notice-warn'}`}, h('div', null, show(w.reason, 400), w.hint && h('span', {class: 'muted'}, ` ${show(w.hint, 300)}`))));
}

// requests are those that the rule is about, and what goes before it.
function requests(rule, rules) {
	const tiers = rules.filter((r) => r.group === rule.group);
	const parts = [
		rule.policy.selector.length > 0 && [h('h3', null, 'Those of the policy'), wanted(rule.policy.selector)],
		[h('h3', null, rule.policy.selector.length > 0 ? 'and of these' : 'Those in which'), wanted(rule.match, rule.fallback ? 'what no other rule takes' : 'all')],
		tiers.length > 1 && [h('h3', null, rule.group.name ? `Tiers of group ${show(rule.group.name, 64)}` : 'Tiers'), h('p', {class: 'muted small'}, 'The first that matches applies.'),
			h('ol', {class: 'rule-tiers'}, tiers.map((t) => h('li', {class: t === rule ? 'strong' : null},
				t === rule ? h('span', {'aria-current': 'true'}, show(t.name, 64)) : h('a', {href: ruleHref(t.name)}, show(t.name, 64)), ' ', modeBadge(t))))],
	];
	return h('div', {class: 'stack-small'}, parts.filter(Boolean));
}

// explainer is the form of the explain page, with a request that falls under the rule.
function explainer(rule, tree) {
	const result = h('div', {class: 'explain-result'});
	const says = h('p', {class: 'muted'}, 'What would become of the request, and why, stands here.');
	const form = requestForm({tree, compact: true, onExplain: (request) => explainInto(result, request, tree, {reveal: true}), onMistake: () => replace(result, says)});
	form.set(Object.fromEntries(rule.limit_keys.map((k) => [k.replace(/^(ip:address)\/.*/, '$1'), ''])));
	replace(result, says);
	exampleOf(rule).then((example) => example && form.set(example)).catch(() => {});
	return h('div', {class: 'explain'}, form.node, result);
}
