// SPDX-License-Identifier: Apache-2.0
//
// The policy as a tree (#/rules?filter=…), and a single rule (#/rules/NAME).

import {h, replace, show} from '../ui/dom.js';
import {ago, dateTime} from '../ui/format.js';
import {get} from '../shell/api.js';
import {overrideList} from '../rules/facts.js';
import {rulePage} from '../rules/page.js';
import {ruleTree} from '../rules/tree.js';

const open = new Set(); // rules with open details; they stay open when the viewer returns

let shown = null; // {draw(params)} of the current page

export default {
	title: 'Rules',
	nav: 'rules',
	async mount(root, params, ctx) {
		let leave = null;
		let renew = null; // updates the page in place for a new policy, if it can
		let ended = false;
		let tree = await get('v1/rules');
		if (!root.isConnected) return undefined; // the viewer has left the page
		let version = policyOf(ctx.live.state);
		const draw = (p) => {
			leave?.();
			params = p;
			const drawn = p.name ? rulePage(root, tree, p.name, ctx) : treePage(root, tree, p, ctx);
			leave = drawn?.leave;
			renew = drawn?.update;
		};
		shown = {draw};
		draw(params);
		// A new policy replaces the shown one.
		const off = ctx.live.on('state', async (state) => {
			const now = policyOf(state);
			const before = version;
			version = now;
			if (!before || now === before) return;
			const next = await get('v1/rules').catch(() => null);
			if (ended || version !== now) return; // the viewer has left the page, or there is a newer policy
			if (!next) {
				version = before; // retry with the next state
				return;
			}
			tree = next;
			if (!renew?.(tree)) draw(params);
		});
		return () => {
			ended = true;
			off();
			leave?.();
		};
	},
	refresh(params) {
		shown.draw(params);
	},
};

// policyOf identifies a policy together with its overrides.
function policyOf(state) {
	return state && JSON.stringify([state.instance, state.policy.version, state.policy.loaded, state.policy.reloads, state.overrides]);
}

function treePage(root, tree, params, ctx) {
	if (tree.rules === 0) {
		replace(root, h('div', {class: 'card empty'}, h('h2', null, 'No rules'), h('p', null, 'Without a policy, every request is allowed. Start the server with --policy FILE.')));
		return null;
	}
	let view = null;
	const [about, top, body] = [h('span', {class: 'rules-about'}), h('div', {class: 'rule-part'}), h('div', {class: 'rule-part'})];
	const count = h('span', {class: 'muted', role: 'status'});
	const typing = document.activeElement?.id === 'rules-filter';
	const filter = h('input', {class: 'input', type: 'search', id: 'rules-filter', placeholder: 'name, key, path, limit …', value: params.get('filter') ?? '', autocomplete: 'off', spellcheck: 'false'});
	const none = h('div', {class: 'card empty', hidden: true}, h('h2', null, 'No rule matches the filter'),
		h('button', {type: 'button', class: 'btn', onclick: () => {
			filter.value = '';
			apply();
			filter.focus();
		}}, 'Show all rules'));
	const apply = () => {
		const n = view.filter(filter.value);
		none.hidden = n > 0;
		filter.value ? params.set('filter', filter.value) : params.delete('filter'); // keeps the filter when the tree is drawn again
		count.textContent = n === tree.rules ? `${tree.rules} ${tree.rules === 1 ? 'rule' : 'rules'}` : `${n} of ${tree.rules} rules`;
		history.replaceState(null, '', filter.value ? `#/rules?${new URLSearchParams({filter: filter.value})}` : '#/rules');
	};
	filter.addEventListener('input', apply);
	replace(root, h('h1', {class: 'visually-hidden'}, 'Rules'), h('div', {class: 'stack'},
		h('div', {class: 'rules-bar'}, h('div', {class: 'rules-filter'}, h('label', {for: filter.id, class: 'visually-hidden'}, 'Filter rules'), filter), count, about), top, none, body));
	const draw = () => {
		const held = document.activeElement?.id;
		view?.destroy();
		view = ruleTree(tree, {open});
		const unfolded = top.querySelector('details')?.open;
		replace(about, aboutPolicy(tree));
		replace(top, warnings(tree), general(tree));
		if (unfolded) top.querySelector('details')?.setAttribute('open', '');
		replace(body, view.node);
		apply();
		view.update(ctx.live);
		if (held && document.activeElement === document.body) document.getElementById(held)?.focus({preventScroll: true});
	};
	draw();
	if (typing) filter.focus();
	const off = ctx.live.on('samples', () => view.update(ctx.live));
	return {update(next) {
		const same = JSON.stringify(next) === JSON.stringify(tree);
		tree = next;
		if (tree.rules > 0 && !same) draw();
		return tree.rules > 0;
	}, leave() {
		off();
		view.destroy();
	}};
}

function aboutPolicy(tree) {
	const parts = [tree.policies.length > 1 && `${tree.policies.length} policies`, tree.version > 0 && `version ${tree.version}`];
	return h('span', {class: 'muted'}, parts.filter(Boolean).join(' · '),
		tree.expires && [' · expires ', h('time', {datetime: tree.expires, title: dateTime(tree.expires)}, ago(tree.expires))]);
}

function warnings(tree) {
	const list = tree.warnings.filter((w) => !w.note);
	if (list.length === 0) return null;
	return h('details', {class: 'notice notice-warn rules-warnings'}, h('summary', null, h('strong', null, list.length === 1 ? '1 warning' : `${list.length} warnings`), ' of the policy'),
		h('ul', {class: 'plain stack-small'}, list.map((w) => h('li', null, show(w.reason, 400), w.hint && h('span', {class: 'muted'}, ` ${show(w.hint, 300)}`), ' ', h('code', {class: 'muted'}, w.code)))));
}

function general(tree) {
	if (tree.overrides.length === 0) return null;
	return h('section', {class: 'card', 'aria-label': 'Overrides of all rules'}, h('div', {class: 'card-head'}, h('h2', null, 'Overrides of all rules'), h('a', {href: '#/keys?kind=overrides', class: 'small'}, 'all overrides')),
		overrideList(tree.overrides));
}
