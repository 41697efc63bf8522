// SPDX-License-Identifier: Apache-2.0
//
//   explainInto(result, request, tree, {share, reveal})  explains a request and draws the explanation into result; calls
//                                   share, if set, with the request; reveal scrolls result into view
//   exampleOf(rule)                 a request that matches a rule, or null

import {h, replace, show} from '../ui/dom.js';
import {get, post} from '../shell/api.js';
import {copyButton} from '../shell/copy.js';
import {rulesOf} from '../rules/words.js';
import {traceOf} from './trace.js';

// The list of rules has no examples, because finding them takes long with many rules.
export async function exampleOf(rule) {
	if (rule.example) return rule.example;
	const one = await get(`v1/rules?${new URLSearchParams({rule: rule.name})}`);
	return rulesOf(one)[0]?.example ?? null;
}

export async function explainInto(result, request, tree, {share = null, reveal = false} = {}) {
	const said = result.querySelector('.verdict-said') ?? h('p', {class: 'visually-hidden verdict-said', role: 'status'});
	result.setAttribute('aria-busy', 'true');
	result.turn = (result.turn ?? 0) + 1; // drops older responses that arrive later
	const mine = result.turn;
	try {
		const given = Object.fromEntries(Object.entries(request.attributes).filter(([, v]) => v !== ''));
		const e = await post('v1/explain', {...request, attributes: given});
		if (mine !== result.turn || !result.isConnected) return; // the viewer has left the page
		share?.({...request, attributes: given});
		setTimeout(() => { // screen readers announce only changes of an existing region
			said.textContent = show(e.why, 300);
		});
		replace(result, said, h('div', {class: 'card'}, traceOf(e, tree, share ? 'h2' : 'h3'),
			share && h('div', {class: 'row'}, copyButton(() => location.href, 'Copy link'),
				h('button', {type: 'button', class: 'btn btn-small', onclick: () => explainInto(result, request, tree, {share})}, 'Explain again'))));
	} catch (e) {
		if (mine !== result.turn) return;
		replace(result, h('div', {class: 'notice notice-bad', role: 'alert'}, h('div', null, h('strong', null, 'Cannot explain this request. '), show(e.message, 500))));
	} finally {
		if (mine === result.turn) result.removeAttribute('aria-busy');
	}
	if (reveal) showStart(result);
}

// showStart scrolls to the start of a node if it is out of view.
function showStart(node) {
	const {top} = node.getBoundingClientRect();
	if (top < 0 || top > innerHeight - 160) node.scrollIntoView({behavior: matchMedia('(prefers-reduced-motion: reduce)').matches ? 'auto' : 'smooth'});
}
