// SPDX-License-Identifier: Apache-2.0

import {h, replace, show} from '../ui/dom.js';
import {askOverride} from './actions.js';
import {limitShape, limitOverride, limitWords} from './form.js';
import {choice, labelled, limitInputs, textInput} from './inputs.js';
import {whomText} from './words.js';

const words = {
	block: ['Every request with this attribute is ', h('strong', {class: 'denied'}, 'denied'), ', whatever the rules say, until the block ends.'],
	allow: ['Every request with this attribute passes all rules ', h('strong', {class: 'allowed'}, 'uncharged'), ' until then.'],
	limit: ['For requests with this attribute, another limit takes the place of the rule’s, without its staged_actions and max_reserved. What is missing from a bucket stays missing.'],
};
const told = {block: 'Blocked', allow: 'Let through', limit: 'Other limit set for'};
const names = ['header:x-api-key', 'ip:address', 'jwt:sub', 'path', 'host', 'method'];

// addOverride asks for an override by what requests have. rules are those of the policy:
// [{name, keys, limits: [{name, algorithm, …}]}].
export function addOverride(rules, done) {
	const kept = rules.filter((r) => r.limits.some((l) => limitShape(l.algorithm)));
	const about = h('p');
	const name = textInput({value: names[0], class: 'input mono', list: 'override-names', required: true});
	const list = h('datalist', {id: 'override-names'}, [...new Set([...rules.flatMap((r) => r.keys), ...names])].map((value) => h('option', {value})));
	const value = textInput({class: 'input mono', required: true});
	const limits = kept.flatMap((r) => r.limits.map((l) => ({...l, rule: r.name, limit: l.name})));
	const inputs = limitInputs(limits[0] ?? {algorithm: 'token_bucket'});
	const rule = choice(limits.map((l, i) => [String(i), show(l.limit, 64)]), '0', () => inputs.of(limits[Number(rule.value)]));
	const ruleField = labelled('Rule', rule, 'A limit is for the attributes that the rule has in limit_keys.');
	const action = choice([['block', 'Block'], ['allow', 'Let through'], limits.length > 0 && ['limit', 'Other limit']].filter(Boolean), 'block', () => draw());
	const draw = () => {
		replace(about, words[action.value]);
		ruleField.hidden = inputs.node.hidden = action.value !== 'limit';
	};
	draw();
	const target = () => limits[Number(rule.value)];
	const make = () => ({
		action: action.value, match: {[name.value.trim()]: value.value},
		...(action.value === 'limit' ? {rules: [target().rule], ...limitOverride(target(), inputs.values())} : {}),
	});
	return askOverride({
		title: 'Add an override', confirm: 'Add it', done, make,
		body: [labelled('What it does', action), about, h('div', {class: 'fields-row'}, labelled('Attribute', name), labelled('Value', value, 'a value, a prefix*, or a network')), list,
			ruleField, inputs.node],
		toldOf: (made) => `${told[made.action]} ${show(whomText(made), 120)}${made.action === 'limit' ? `: ${limitWords(target(), inputs.values())}` : ''}`,
	});
}
