// SPDX-License-Identifier: Apache-2.0
//
//   rulePage(root, tree, name, ctx) → {leave(), update(tree)}  shows a rule; update applies a new policy in place and
//                                   keeps a half-typed request and the focus

import {h, replace, show} from '../ui/dom.js';
import {exampleOf, explainInto} from '../explain/explaining.js';
import {limitCard, overrideList, ruleFacts} from './facts.js';
import {requestForm} from '../explain/form.js';
import {modeBadge, ruleHref, rulesOf, matchAny, matchList} from './words.js';
import {tightKeys} from './keys.js';
import {trafficTiles} from './traffic.js';

export function rulePage(root, tree, name, ctx) {
	const rule = rulesOf(tree).find((r) => r.name === name);
	if (!rule) {
		replace(root, h('div', {class: 'card empty'}, h('h2', null, 'Rule not found'), h('p', null, `The active policy has no rule ${show(name, 64)}.`), h('a', {class: 'btn', href: '#/rules'}, 'All rules')));
		return {leave() {}, update: () => false};
	}
	const tiles = trafficTiles(rule);
	const keys = tightKeys(rule, 5);
	const parts = [];
	// part draws a part of a rule, and draws it again when its data has changed.
	const part = (of, draw) => {
		const node = h('div', {class: 'rule-part'});
		let before = '';
		parts.push((now, rules, all) => {
			const text = JSON.stringify(of(now, rules, all));
			if (text !== before) replace(node, draw(now, rules, all));
			node.hidden = node.childElementCount === 0;
			before = text;
		});
		return node;
	};
	const renew = (all) => {
		const rules = rulesOf(all);
		const now = rules.find((r) => r.name === name);
		if (now?.mode !== rule.mode || JSON.stringify(now.limit_keys) !== JSON.stringify(rule.limit_keys)) return false; // too different: draw the page again
		for (const draw of parts) draw(now, rules, all);
		return true;
	};
	const body = h('div', {class: 'stack rule'}, part((r) => [r.description, r.policy.id, r.fallback], head), tiles.node,
		part((r, _, all) => all.warnings.filter((w) => w.rule === name), (r, _, all) => warned(r, all)),
		h('div', {class: 'rule-cards'}, part((r) => r.limits, (r) => card('Limits', h('div', {class: 'rule-limits'}, r.limits.map(limitCard)))),
			part((r, rules) => [r.match, r.policy.selector, r.group.name, rules.filter((t) => t.group === r.group).map((t) => [t.name, t.mode])], (r, rules) => card('Matching requests', requests(r, rules)))),
		h('div', {class: 'rule-cards'}, card('Keys', keys.node), part((r) => ({...r, overrides: [], policy: 0, group: 0, place: 0}), (r) => card('Behavior', ruleFacts({...r, limits: []})))),
		part((r) => r.overrides, (r) => (r.overrides.length > 0 ? card('Overrides', overrideList(r.overrides)) : [])),
		h('section', {class: 'card', 'aria-label': 'Explain a request'}, h('div', {class: 'card-head'}, h('h2', null, 'Explain a request')), explainer(rule, tree)));
	renew(tree);
	replace(root, body);
	const update = () => tiles.update(ctx.live);
	update();
	keys.start();
	const off = ctx.live.on('samples', update);
	return {update: renew, leave() {
		off();
		keys.stop();
	}};
}

function card(title, ...body) {
	return h('section', {class: 'card', 'aria-label': title}, h('div', {class: 'card-head'}, h('h2', null, title)), h('div', {class: 'stack-small'}, body));
}

function head(rule) {
	return h('div', {class: 'page-head'}, h('nav', {'aria-label': 'Back'}, h('a', {href: '#/rules', class: 'small'}, '‹ All rules')),
		h('div', {class: 'row'}, h('h1', null, show(rule.name, 64)), modeBadge(rule), rule.policy.id && h('span', {class: 'badge'}, `policy ${show(rule.policy.id, 64)}`),
			rule.fallback && h('span', {class: 'badge'}, 'fallback')),
		rule.description && h('p', {class: 'lede'}, show(rule.description, 1024)));
}

function warned(rule, tree) {
	const list = tree.warnings.filter((w) => w.rule === rule.name);
	return list.map((w) => h('div', {class: `notice ${w.note ? '' : 'notice-warn'}`}, h('div', null, show(w.reason, 400), w.hint && h('span', {class: 'muted'}, ` ${show(w.hint, 300)}`))));
}

// requests describes the matching requests and the tiers of the rule.
function requests(rule, rules) {
	const tiers = rules.filter((r) => r.group === rule.group);
	const parts = [
		rule.policy.selector.length > 0 && [h('h3', null, 'Selector of the policy'), matchList(rule.policy.selector)],
		[h('h3', null, rule.policy.selector.length > 0 ? 'Match of the rule' : 'Match'), matchAny(rule.match, rule.fallback ? 'requests that match no other rule' : 'all')],
		tiers.length > 1 && [h('h3', null, rule.group.name ? `Tiers of group ${show(rule.group.name, 64)}` : 'Tiers'), h('p', {class: 'muted small'}, 'The first matching tier applies.'),
			h('ol', {class: 'rule-tiers'}, tiers.map((t) => h('li', {class: t === rule ? 'strong' : null},
				t === rule ? h('span', {'aria-current': 'true'}, show(t.name, 64)) : h('a', {href: ruleHref(t.name)}, show(t.name, 64)), ' ', modeBadge(t))))],
	];
	return h('div', {class: 'stack-small'}, parts.filter(Boolean));
}

// explainer is the form of the explain page, filled with a request that matches the rule.
function explainer(rule, tree) {
	const result = h('div', {class: 'explain-result'});
	const says = h('p', {class: 'muted'}, 'The decision and its reasons appear here.');
	const form = requestForm({tree, compact: true, onExplain: (request) => explainInto(result, request, tree, {reveal: true}), onMistake: () => replace(result, says)});
	form.set(Object.fromEntries(rule.limit_keys.map((k) => [k.replace(/^(ip:address)\/.*/, '$1'), ''])));
	replace(result, says);
	exampleOf(rule).then((example) => example && form.set(example)).catch(() => {});
	return h('div', {class: 'explain'}, form.node, result);
}
