// SPDX-License-Identifier: Apache-2.0
//
// Explains the decision on a request. #/explain?a.NAME=VALUE&cost=… explains that request immediately, and
// #/explain?rule=NAME starts with a request that matches the rule.

import {h, replace, show} from '../ui/dom.js';
import {get} from '../shell/api.js';
import {exampleOf, explainInto} from '../explain/explaining.js';
import {queryOf, requestForm, requestOf} from '../explain/form.js';
import {rulesOf} from '../rules/words.js';

const mostExamples = 8;

export default {
	title: 'Explain',
	nav: 'explain',
	async mount(root, params) {
		const tree = await get('v1/rules');
		if (!root.isConnected) return; // the viewer has left the page
		const result = h('section', {class: 'explain-result', 'aria-label': 'Explanation'});
		const ask = (request) => explainInto(result, request, tree, {share, reveal: true});
		const form = requestForm({tree, onExplain: ask, onMistake: () => replace(result, waiting(tree))});
		const share = (request) => history.replaceState(null, '', `#/explain?${queryOf(request, tree)}`);
		const examples = rulesOf(tree).filter((r) => r.example && r.mode !== 'off').slice(0, mostExamples);
		root.append(h('div', {class: 'explain'},
			h('div', {class: 'stack'}, h('section', {class: 'card', 'aria-label': 'Request'}, form.node),
				examples.length > 0 && h('section', {class: 'explain-examples', 'aria-label': 'Examples'}, h('h2', {class: 'small muted'}, 'Or try a request that matches'),
					h('div', {class: 'row'}, examples.map((r) => h('button', {type: 'button', class: 'btn btn-small', onclick: () => {
						form.set(r.example);
						ask(form.request());
					}}, show(r.name, 64)))))),
			result));
		const begin = (p) => start(form, result, tree, p, share);
		this.begin = begin;
		await begin(params);
	},
	refresh(params) {
		this.begin(params);
	},
};

// start shows the request in the address.
async function start(form, result, tree, params, share) {
	const request = requestOf(params);
	const rule = rulesOf(tree).find((r) => r.name === params.get('rule'));
	if (rule) {
		const example = await exampleOf(rule);
		if (example) {
			form.set(example);
			await explainInto(result, form.request(), tree);
			return;
		}
	}
	if (Object.keys(request.attributes).length > 0) {
		form.set(request.attributes, request.cost);
		if (request.missing.length > 0) form.missing(request.missing);
		else await explainInto(result, form.request(), tree, {share});
		if (request.missing.length === 0) return;
	} else {
		form.set({method: 'GET', path: '/', ...Object.fromEntries(tree.attributes.filter((a) => !['method', 'path', 'host'].includes(a.name)).slice(0, 3).map((a) => [a.name, '']))});
	}
	replace(result, waiting(tree));
}

function waiting(tree) {
	return h('div', {class: 'card empty'}, h('h2', null, 'Paste a request to explain its decision'),
		h('p', null, tree.rules > 0 ? 'You see each rule in order: why it applies or not, its bucket before and after, and when the request is allowed. No tokens are spent.' :
			'There is no policy, so every request is allowed.'));
}
