// SPDX-License-Identifier: Apache-2.0

import {h, replace, show} from '../ui/dom.js';
import {may} from '../shell/session.js';
import {askOverride} from './actions.js';
import {keptWords, limitShape, limitOverride, limitWords} from './form.js';
import {choice, labelled, limitInputs, textInput} from './inputs.js';
import {whomText} from './words.js';

const words = {
	block: ['Every request with this attribute is ', h('strong', {class: 'denied'}, 'denied'), ', whatever the rules say, until the block ends.'],
	allow: ['Every request with this attribute passes all rules ', h('strong', {class: 'allowed'}, 'uncharged'), ' until then.'],
	limit: ['For requests with this attribute, another limit takes the place of the rule’s. What is missing from a bucket stays missing.'],
	shadow: ['None of these requests is denied by a rule until it ends. Rules still decide, and show what they would have denied; what an override blocks stays blocked.'],
	shadow_all: [h('strong', null, 'Nobody is denied anything by a rule until it ends.'), ' Rules still decide, and show what they would have denied; what an override blocks stays blocked. What stands behind the limiter gets all the rest.'],
	break_glass: [h('strong', null, 'Nothing is limited until it ends, for everybody.'), ' Every request passes at once: no rule decides, no bucket is charged, and what is blocked passes, too. What stands behind the limiter gets all of it.'],
};
const told = {block: 'Blocked', allow: 'Let through', limit: 'Other limit set for', shadow: 'In shadow:', break_glass: 'Glass broken:'};
const names = ['header:x-api-key', 'ip:address', 'jwt:sub', 'path', 'host', 'method'];

// addOverride asks for an override by what requests have, or of all of them. rules are
// those of the policy: [{name, keys, limits: [{name, algorithm, …}]}].
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
	const ruleField = labelled('Rule', rule, 'A limit is for the attributes that the rule has in limit_keys.');
	const action = choice(actionsFor(limits), 'block', () => draw());
	const draw = () => {
		const whole = action.value === 'break_glass';
		const all = action.value === 'shadow' && whom.all('shadow');
		replace(about, words[all ? 'shadow_all' : action.value], action.value === 'limit' && keptWords(target().kept));
		about.className = ['shadow', 'break_glass'].includes(action.value) ? `notice ${whole || all ? 'notice-bad' : 'notice-warn'} notice-text` : '';
		ruleField.hidden = inputs.node.hidden = action.value !== 'limit';
		whom.show(action.value);
	};
	draw();
	const make = () => ({
		action: action.value, ...whom.value(action.value),
		...(action.value === 'limit' ? {rules: [target().rule], ...limitOverride(target(), inputs.values())} : {}),
	});
	return askOverride({
		title: 'Add an override', confirm: 'Add it', done, make,
		body: [labelled('What it does', action, may('configure') ? '' : 'To hold for all requests (shadow, break glass) takes the role configure.'), about, whom.node, ruleField, inputs.node],
		toldOf: (made) => `${told[made.action]} ${show(whomText(made), 120)}${made.action === 'limit' ? `: ${limitWords(target(), inputs.values())}` : ''}`,
	});
}

// actionsFor are those that the viewer may take.
function actionsFor(limits) {
	return [['block', 'Block'], ['allow', 'Let through'], limits.length > 0 && ['limit', 'Other limit'],
		may('configure') && ['shadow', 'Shadow: deny nothing'], may('configure') && ['break_glass', 'Break glass: limit nothing']].filter(Boolean);
}

// whomInputs ask which requests it is about: those that have an attribute, or all of
// them, of which only shadow lets one choose.
function whomInputs(rules, changed) {
	const name = textInput({value: names[0], class: 'input mono', list: 'override-names', required: true});
	const list = h('datalist', {id: 'override-names'}, [...new Set([...rules.flatMap((r) => r.keys), ...names])].map((value) => h('option', {value})));
	const value = textInput({class: 'input mono', required: true});
	const whose = choice([['all', 'All requests, of everybody'], ['some', 'Those with an attribute']], 'all', () => changed());
	const whoseField = labelled('Which requests', whose);
	const attribute = h('div', {class: 'fields-row'}, labelled('Attribute', name), labelled('Value', value, 'a value, a prefix*, or a network'));
	const all = (action) => action === 'break_glass' || (action === 'shadow' && whose.value === 'all');
	const node = h('div', {class: 'stack-small'}, whoseField, attribute, list);
	const show = (action) => {
		whoseField.hidden = action !== 'shadow';
		attribute.hidden = all(action);
		node.hidden = action === 'break_glass';
	};
	return {node, show, all, value: (action) => (all(action) ? {} : {match: {[name.value.trim()]: value.value}})};
}
