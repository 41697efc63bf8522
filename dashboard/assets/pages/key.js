// SPDX-License-Identifier: Apache-2.0

import {h, replace, show} from '../ui/dom.js';
import {get} from '../shell/api.js';
import {KeyView} from '../key/view.js';

export default {
	title: 'Key',
	nav: 'keys',
	async mount(root, params, ctx) {
		const key = params.get('key') ?? '';
		if (key === '') {
			return askForKey(root, ctx);
		}
		const bucket = await get(`v1/bucket?${new URLSearchParams({key})}`).catch((err) => err);
		if (bucket instanceof Error) {
			replace(root, back(params), h('div', {class: 'empty card'}, h('h2', null, 'Cannot show this bucket'),
				h('p', null, show(bucket.message, 400)), h('p', {class: 'mono'}, show(key, 200))));
			return undefined;
		}
		const view = new KeyView(key, bucket);
		replace(root, h('div', {class: 'stack'}, back(params), view.node));
		return () => view.close();
	},
};

function back(params) {
	const rule = params.get('rule');
	return h('nav', {class: 'crumbs', 'aria-label': 'Breadcrumb'}, h('a', {href: '#/keys'}, 'Keys'), h('span', {'aria-hidden': 'true'}, '›'),
		rule && [h('a', {href: `#/keys?${new URLSearchParams({rule})}`}, show(rule, 64)), h('span', {'aria-hidden': 'true'}, '›')], h('span', {'aria-current': 'page'}, 'Key'));
}

// askForKey shows a form for the key.
function askForKey(root, ctx) {
	const field = h('input', {class: 'input mono', id: 'key-field', required: true, autocomplete: 'off', spellcheck: 'false', placeholder: 'per-key:x-api-key=k1'});
	replace(root, h('form', {class: 'card stack-small', onsubmit: (e) => {
		e.preventDefault();
		ctx.navigate(`#/key?${new URLSearchParams({key: field.value.trim()})}`);
	}}, h('div', {class: 'field'}, h('label', {for: 'key-field'}, 'Bucket key, as shown by Explain'), field),
	h('div', null, h('button', {class: 'btn btn-primary'}, 'Show'))));
	return undefined;
}
