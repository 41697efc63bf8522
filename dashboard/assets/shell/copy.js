// SPDX-License-Identifier: Apache-2.0
//
//   copyLine(text)    a command, and a button that copies it
//   copyButton(text)  the button alone; text may be a function

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
			toast({text: 'The browser does not let the page copy. Select the text and copy it yourself.', kind: 'bad'});
		}
	}}, icon('copy'), word);
}

// A page that came over plain HTTP from elsewhere has no clipboard, but may copy a selection.
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
