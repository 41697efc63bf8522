// SPDX-License-Identifier: Apache-2.0
//
// The picker of examples, with the description of the chosen one.
//
//   presetPicker(presets, onPick(preset)) → {node, show(preset or null)}

import {h, replace} from '../ui/dom.js';

export function presetPicker(presets, onPick) {
	const groups = new Map([['Learn the algorithms', presets.filter((p) => !p.source)]]);
	for (const p of presets) {
		if (!p.source) continue;
		groups.set(p.source.title, [...(groups.get(p.source.title) ?? []), p]);
	}
	const own = h('option', {value: '', hidden: true}, 'Your own');
	const select = h('select', {class: 'select play-preset', id: 'play-preset', onchange: () => pick(presets.find((p) => p.id === select.value))}, own,
		[...groups].map(([title, list]) => h('optgroup', {label: title}, list.map((p) => h('option', {value: p.id}, p.title)))));
	const order = [...groups.values()].flat();
	const step = (by) => () => pick(order[(order.findIndex((p) => p.id === select.value) + by + order.length) % order.length]);
	const text = h('p', {class: 'play-text'});
	const note = h('p', {class: 'play-note', hidden: true});
	const node = h('div', {class: 'play-picker'}, h('div', {class: 'row'}, h('label', {for: 'play-preset', class: 'strong'}, 'Example'), select,
		h('button', {type: 'button', class: 'btn', 'aria-label': 'Previous example', onclick: step(-1)}, '←'), h('button', {type: 'button', class: 'btn', 'aria-label': 'Next example', onclick: step(1)}, '→')),
	text, note);

	function pick(preset) {
		if (preset) onPick(preset);
	}

	return {
		node,
		show(preset) {
			select.value = preset?.id ?? '';
			text.textContent = preset?.text ?? 'Your own settings. After each change, this server’s engine decides all requests again, in virtual time. The link contains all settings.';
			const remark = preset?.source?.note;
			note.hidden = !remark;
			replace(note, remark);
		},
	};
}
