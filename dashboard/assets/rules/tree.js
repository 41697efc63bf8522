// SPDX-License-Identifier: Apache-2.0
//
// The policy as a tree: policies, groups, rules.
//
//   ruleTree(tree, {open})  {node, filter(text) → the number of matches, update(live), destroy()}
//     open: the Set of rule names with open details; ruleTree updates it

import {h, replace, show} from '../ui/dom.js';
import {limitLine, modeBadge, ruleHref, rulesOf, ruleText, matchAny, matchList, bucketScope} from './words.js';
import {ruleFacts, overrideList} from './facts.js';
import {trafficCell} from './traffic.js';
import {tightKeys} from './keys.js';

const most = 300; // drawn rules; a filter selects among more

export function ruleTree(tree, {open}) {
	const rules = rulesOf(tree);
	const texts = new Map(rules.map((r) => [r.name, ruleText(r)]));
	const rows = new Map();
	const node = h('div', {class: 'stack'});
	let shown = [];
	let seen = null;
	const rowOf = (rule) => {
		if (!rows.has(rule.name)) rows.set(rule.name, ruleRow(rule, tree, open));
		return rows.get(rule.name);
	};
	const draw = () => {
		const names = new Set(shown.slice(0, most).map((r) => r.name));
		for (const [name, row] of rows) {
			if (!names.has(name)) row.sleep();
		}
		const policies = tree.policies.map((p) => policyNode(p, tree, names, rules, rowOf)).filter(Boolean);
		const rest = shown.length - names.size;
		replace(node, policies.length > 0 && heads(), policies, rest > 0 && h('p', {class: 'muted'}, `${rest.toLocaleString('en')} more rules are not shown. Use the filter to find them.`),
			policies.length > 0 && h('p', {class: 'hint'}, 'Each request counts under one rule: the rule with the longest wait if it is denied, otherwise the rule with the fewest tokens left.'));
	};
	return {node, filter(text) {
		const words = text.toLowerCase().split(/\s+/).filter(Boolean);
		shown = rules.filter((r) => words.every((w) => texts.get(r.name).includes(w)));
		draw();
		if (seen) this.update(seen);
		return shown.length;
	}, update(live) {
		seen = live;
		for (const r of shown.slice(0, most)) rows.get(r.name)?.update(live);
	}, destroy() {
		for (const row of rows.values()) row.sleep();
	}};
}

// heads returns the column headings, which are hidden from screen readers.
function heads() {
	return h('div', {class: 'tree-heads', 'aria-hidden': 'true'}, ['Rule', 'Matching requests', 'Limit', 'Last minute'].map((t) => h('span', null, t)));
}

// policyNode returns a policy with its shown rules, or null if there are none.
function policyNode(policy, tree, names, rules, rowOf) {
	const groups = policy.groups.map((g) => ({...g, shown: rules.filter((r) => r.group === g && names.has(r.name))})).filter((g) => g.shown.length > 0);
	if (groups.length === 0) return null;
	const list = h('ul', {class: 'tree-groups plain'}, groups.map((g) => groupNode(g, rowOf)));
	const body = h('div', {class: 'card card-flush'}, list);
	if (tree.policies.length === 1 && policy.id === '') return h('section', null, h('h2', {class: 'visually-hidden'}, 'Policy'), body);
	return h('section', {class: 'tree-policy'},
		h('div', {class: 'tree-policy-head'}, h('h2', null, policy.id ? show(policy.id, 64) : 'Policy'), h('div', {class: 'tree-selector'}, matchList(policy.selector))), body);
}

// groupNode returns a group of tiers, or a single rule.
function groupNode(group, rowOf) {
	const rows = group.shown.map((r) => rowOf(r).node);
	if (group.rules.length === 1) return h('li', {class: 'tree-group'}, h('ul', {class: 'plain'}, rows));
	return h('li', {class: 'tree-group tree-tiers'},
		h('p', {class: 'tree-tiers-head'}, h('span', {class: 'badge'}, group.name ? `group ${show(group.name, 64)}` : 'tiers'), ' the first match applies'),
		h('ol', {class: 'plain'}, rows));
}

// ruleRow returns a row of the tree and its details.
function ruleRow(rule, tree, open) {
	const id = `rule-${rule.place}`;
	const traffic = trafficCell(rule.name);
	const caret = h('button', {type: 'button', class: 'btn btn-ghost tree-caret', 'aria-expanded': 'false', id: `${id}-more`, 'aria-controls': id, 'aria-label': `Details of ${show(rule.name, 64)}`,
		onclick: () => set(!open.has(rule.name))}, h('span', {class: 'caret', 'aria-hidden': 'true'}, '›'));
	const panel = h('div', {class: 'tree-panel', id, hidden: true});
	const warnings = tree.warnings.filter((w) => w.rule === rule.name && !w.note).length;
	let keys = null;
	const node = h('li', {class: `tree-rule${rule.mode === 'off' ? ' tree-off' : ''}`}, h('div', {class: 'tree-line', onclick: (e) => {
		if (!e.target.closest('a, button') && String(getSelection()) === '') set(!open.has(rule.name));
	}}, caret,
	h('div', {class: 'tree-name'}, h('div', {class: 'row'}, h('a', {href: ruleHref(rule.name), id: `${id}-link`, class: 'tree-link'}, show(rule.name, 64)), modeBadge(rule),
		rule.fallback && h('span', {class: 'badge'}, 'fallback'),
		warnings > 0 && h('span', {class: 'badge badge-warn'}, warnings === 1 ? '1 warning' : `${warnings} warnings`),
		rule.overrides.length > 0 && h('span', {class: 'badge badge-info'}, rule.overrides.length === 1 ? '1 override' : `${rule.overrides.length} overrides`)),
	h('div', {class: 'tree-whose'}, bucketScope(rule))),
	h('div', {class: 'tree-match'}, matchAny(rule.match, rule.fallback ? 'requests that match no other rule' : rule.policy.selector.length > 0 ? 'all requests of the policy' : 'all requests')),
	h('div', {class: 'tree-limits'}, rule.limits.map(limitLine)),
	traffic.node), panel);
	const set = (opened) => {
		opened ? open.add(rule.name) : open.delete(rule.name);
		caret.setAttribute('aria-expanded', String(opened));
		panel.hidden = !opened;
		if (opened && panel.childElementCount === 0) {
			keys = tightKeys(rule, 3);
			replace(panel, panelOf(rule, keys));
		}
		opened ? keys?.start() : keys?.stop();
	};
	if (open.has(rule.name)) set(true);
	return {node, update: (live) => traffic.update(live), sleep: () => keys?.stop()};
}

function panelOf(rule, keys) {
	return [rule.description && h('p', {class: 'tree-description'}, show(rule.description, 1024)),
		h('div', {class: 'tree-panel-grid'}, ruleFacts(rule), h('div', {class: 'stack-small'}, keys.node)),
		rule.overrides.length > 0 && overrideList(rule.overrides),
		h('div', {class: 'row'}, h('a', {class: 'btn btn-small', href: ruleHref(rule.name)}, 'Open the rule'),
			h('a', {class: 'btn btn-small', href: `#/explain?${new URLSearchParams({rule: rule.name})}`}, 'Explain a request'))];
}
