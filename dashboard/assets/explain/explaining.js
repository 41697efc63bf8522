// SPDX-License-Identifier: Apache-2.0
//
//   explainInto(result, request, tree, {share, reveal})  asks the API what would become of a request, and draws that into
//                                   result; share, if any, is told what was asked; reveal: result is scrolled into view
//   exampleOf(rule)                 a request that falls under a rule, or null

import {h, replace, show} from '../ui/dom.js';
import {get, post} from '../shell/api.js';
import {copyButton} from '../shell/copy.js';
import {rulesOf} from '../rules/words.js';
import {traceOf} from './trace.js';

// Of many rules an example is looked for only when somebody asks.
export async function exampleOf(rule) {
	if (rule.example) return rule.example;
	const one = await get(`v1/rules?${new URLSearchParams({rule: rule.name})}`);
	return rulesOf(one)[0]?.example ?? null;
}

export async function explainInto(result, request, tree, {share = null, reveal = false} = {}) {
	const said = result.querySelector('.verdict-said') ?? h('p', {class: 'visually-hidden verdict-said', role: 'status'});
	result.setAttribute('aria-busy', 'true');
	result.turn = (result.turn ?? 0) + 1; // an older answer that comes later is dropped
	const mine = result.turn;
	try {
		const given = Object.fromEntries(Object.entries(request.attributes).filter(([, v]) => v !== ''));
		const e = await post('v1/explain', {...request, attributes: given});
		if (mine !== result.turn || !result.isConnected) return; // another page has the address by now
		share?.({...request, attributes: given});
		setTimeout(() => { // into what is there already: only that is read out
			said.textContent = show(e.why, 300);
		});
		replace(result, said, h('div', {class: 'card'}, traceOf(e, tree, share ? 'h2' : 'h3'),
			share && h('div', {class: 'row'}, copyButton(() => location.href, 'Copy the address of this explanation'),
				h('button', {type: 'button', class: 'btn btn-small', onclick: () => explainInto(result, request, tree, {share})}, 'Explain again'))));
	} catch (e) {
		if (mine !== result.turn) return;
		replace(result, h('div', {class: 'notice notice-bad', role: 'alert'}, h('div', null, h('strong', null, 'It cannot be explained. '), show(e.message, 500))));
	} finally {
		if (mine === result.turn) result.removeAttribute('aria-busy');
	}
	if (reveal) showStart(result);
}

// showStart scrolls to where a node begins, if that is out of sight.
function showStart(node) {
	const {top} = node.getBoundingClientRect();
	if (top < 0 || top > innerHeight - 160) node.scrollIntoView({behavior: matchMedia('(prefers-reduced-motion: reduce)').matches ? 'auto' : 'smooth'});
}
