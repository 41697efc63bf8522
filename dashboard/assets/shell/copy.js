// SPDX-License-Identifier: Apache-2.0
//
//   copyLine(text)    a command with a copy button
//   copyButton(text)  the button; text may be a function

import {h} from '../ui/dom.js';
import {icon} from './icons.js';
import {toast} from './dialog.js';

export function copyButton(text, label = 'Copy') {
	const word = h('span', {'aria-live': 'polite'}, label);
	let timer = 0;
	return h('button', {type: 'button', class: 'btn btn-small', onclick: async () => {
		try {
			await copied(typeof text === 'function' ? text() : text);
			word.textContent = 'Copied';
			clearTimeout(timer);
			timer = setTimeout(() => {
				word.textContent = label;
			}, 1500);
		} catch {
			toast({text: 'The browser does not allow copying. Select the text and copy it.', kind: 'bad'});
		}
	}}, icon('copy'), word);
}

// Over plain HTTP from another host there is no clipboard API, but a page may copy a selection.
async function copied(text) {
	if (navigator.clipboard) return navigator.clipboard.writeText(text);
	const area = h('textarea', {class: 'visually-hidden', value: text, readonly: true});
	document.body.append(area);
	area.select();
	const done = document.execCommand('copy');
	area.remove();
	if (!done) throw new Error('not copied');
	return undefined;
}

export function copyLine(text) {
	return h('div', {class: 'copyline'}, h('code', null, text), copyButton(text));
}
