// SPDX-License-Identifier: Apache-2.0

import {h, replace, show} from '../ui/dom.js';
import {may} from '../shell/session.js';
import {actionOf, actions} from '../shell/vocabulary.js';
import {askOverride} from './actions.js';
import {keptWords, limitShape, limitOverride, limitWords} from './form.js';
import {choice, labelled, limitInputs, textInput} from './inputs.js';
import {whomText} from './words.js';

const names = ['header:x-api-key', 'ip:address', 'jwt:sub', 'path', 'host', 'method'];

// addOverride asks for an override by an attribute or for all requests. rules are the rules of the
// policy: [{name, keys, limits: [{name, algorithm, …}]}].
export function addOverride(rules, done) {
	const about = h('p');
	const limits = rules.flatMap((r) => r.limits.filter((l) => limitShape(l.algorithm)).map((l) => ({...l, rule: r.name, limit: l.name})));
	const whom = whomInputs(rules, () => draw());
	const inputs = limitInputs(limits[0] ?? {algorithm: 'token_bucket'});
	const target = () => limits[Number(rule.value)];
	const rule = choice(limits.map((l, i) => [String(i), show(l.limit, 64)]), '0', () => {
		inputs.of(target());
		draw();
	});
	const ruleField = labelled('Rule', rule, 'The limit applies per value of the rule’s limit_keys.');
	const action = choice(actionsFor(limits), 'block', () => draw());
	const draw = () => {
		const kind = actionOf(action.value);
		const all = whom.all(kind);
		replace(about, all ? h('strong', null, kind.effect_all) : kind.effect, kind.limit && keptWords(target().kept));
		about.className = kind.suspends ? `notice ${all ? 'notice-bad' : 'notice-warn'} notice-text` : '';
		ruleField.hidden = inputs.node.hidden = !kind.limit;
		whom.show(kind);
	};
	draw();
	const make = () => ({
		action: action.value, ...whom.value(actionOf(action.value)),
		...(actionOf(action.value).limit ? {rules: [target().rule], ...limitOverride(target(), inputs.values())} : {}),
	});
	return askOverride({
		title: 'Add an override', confirm: 'Add override', done, make,
		body: [labelled('Action', action, may('configure') ? '' : `Actions for all requests (${actions().filter((a) => a.suspends).map((a) => a.label.toLowerCase()).join(', ')}) require the role configure.`), about, whom.node, ruleField, inputs.node],
		toldOf: (made) => `${actionOf(made.action).made} ${show(whomText(made), 120)}${actionOf(made.action).limit ? `: ${limitWords(target(), inputs.values())}` : ''}`,
	});
}

// actionsFor returns the actions that the viewer may use.
function actionsFor(limits) {
	return actions().filter((a) => (!a.limit || limits.length > 0) && (!a.suspends || may('configure'))).map((a) => [a.action, a.choice ?? a.label]);
}

// whomInputs asks for the matching requests: by an attribute or, if the action permits, all.
function whomInputs(rules, changed) {
	const name = textInput({value: names[0], class: 'input mono', list: 'override-names', required: true});
	const list = h('datalist', {id: 'override-names'}, [...new Set([...rules.flatMap((r) => r.keys), ...names])].map((value) => h('option', {value})));
	const value = textInput({class: 'input mono', required: true});
	const whose = choice([['all', 'All requests of all clients'], ['some', 'Requests with an attribute']], 'all', () => changed());
	const whoseField = labelled('Applies to', whose);
	const attribute = h('div', {class: 'fields-row'}, labelled('Attribute', name), labelled('Value', value, 'a value, a prefix*, or a network'));
	const all = (kind) => kind.all && (!kind.some || whose.value === 'all');
	const node = h('div', {class: 'stack-small'}, whoseField, attribute, list);
	const show = (kind) => {
		whoseField.hidden = !(kind.all && kind.some);
		attribute.hidden = all(kind);
		node.hidden = !kind.some;
	};
	return {node, show, all, value: (kind) => (all(kind) ? {} : {match: {[name.value.trim()]: value.value}})};
}
