// SPDX-License-Identifier: Apache-2.0
//
// Rules in words. Policy text is untrusted and goes through show().
//
//   rulesOf(tree)       all rules of v1/rules in order, each with its policy and its group
//   ruleHref(name)      the address of a rule's page
//   ruleText(rule)      the text that the filter searches, in lower case
//   modeBadge(rule)     the mode, or null for enforce
//   bucketScope(rule)   the keys of the rule's buckets
//   matchList(clauses)  a list of match clauses, or a text if there are none
//   matchAny(match)     the alternatives of a match, or a text if there are none
//   limitLine(limit)    a limit in one line
//   secretName(name, tree)  reports whether the value of an attribute may be a credential

import {h, show} from '../ui/dom.js';

export function rulesOf(tree) {
	const all = tree.policies.flatMap((policy) => policy.groups.flatMap((group) => group.rules.map((rule) => ({...rule, policy, group}))));
	return all.sort((a, b) => a.place - b.place);
}

export function ruleHref(name) {
	return `#/rules/${encodeURIComponent(name)}`;
}

export function ruleText(rule) {
	const clauses = [...rule.policy.selector, ...rule.match.flat()];
	return [rule.name, rule.description, rule.mode, rule.policy.id, rule.group.name, ...rule.limit_keys, ...clauses.flatMap((c) => [c.attribute, c.wants]),
		...rule.limits.flatMap((l) => [l.name, l.words]), ...rule.overrides.map((o) => o.id)].join('\n').toLowerCase();
}

export function modeBadge(rule) {
	if (rule.mode === 'enforce') return null;
	const said = {shadow: ['badge-shadow', 'shadow', 'evaluated, but denies no requests'], off: ['', 'off', 'not evaluated']}[rule.mode] ??
		['badge-shadow', `enforced for ${rule.mode}`, `enforced for ${rule.mode} of its keys, in shadow mode for the others`];
	return h('span', {class: `badge ${said[0]}`, title: said[2]}, show(said[1], 40));
}

export function bucketScope(rule) {
	if (rule.limit_keys.length === 0) return h('span', {class: 'whose'}, 'one bucket for all clients');
	return h('span', {class: 'whose'}, 'one bucket per ', rule.limit_keys.map((k, i) => [i > 0 && ' and ', h('code', null, show(k, 60))]));
}

export function matchList(clauses, none = 'all requests') {
	if (clauses.length === 0) return h('span', {class: 'wanted muted'}, none);
	return h('ul', {class: 'wanted plain'}, clauses.map((c) => h('li', null, clause(c))));
}

export function matchAny(match, none) {
	if (match.length < 2) return matchList(match[0] ?? [], none);
	return h('div', null, match.map((clauses, i) => [i > 0 && h('p', {class: 'muted small'}, 'or'), matchList(clauses)]));
}

function clause({attribute, wants}) {
	const name = h('code', null, show(attribute, 60));
	if (wants === 'any value') return [name, ' is present'];
	if (wants === 'not any value') return [name, ' is absent'];
	const [not, rest] = wants.startsWith('not ') ? ['is not ', wants.slice(4)] : ['is ', wants];
	return [name, ` ${not}`, h('bdi', {dir: 'ltr'}, show(rest, 200))];
}

export function limitLine(limit) {
	const [algorithm, ...words] = limit.words.split(': ');
	const said = words.join(': ').split('; ').filter((part) => !part.startsWith('full in ')).join('; ');
	return h('p', {class: 'limit-line'}, said, ' ', h('span', {class: 'limit-algorithm'}, algorithm));
}

// The words that package policy looks for in names of secrets.
const telling = /auth|cookie|key|token|secret|session|passw|pwd|credential|signature|sid|jwt|cert|csrf/i;

export function secretName(name, tree) {
	const known = tree?.attributes.find((a) => a.name === name);
	if (known) return known.secret;
	if (/^cookie:/i.test(name)) return true;
	return !/^(jwt|ip):|^(method|path|host)$/i.test(name) && telling.test(name.replace(/^[^:]*:/, ''));
}
