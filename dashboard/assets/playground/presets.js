// SPDX-License-Identifier: Apache-2.0
//
// Examples to begin with, and what there is to see in each.
//
//   presetPicker(presets, onPick(preset)) → {node, show(preset or null)}

import {h, replace} from '../ui/dom.js';

export function presetPicker(presets, onPick) {
	const groups = new Map([['To learn with', presets.filter((p) => !p.source)]]);
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
		h('button', {type: 'button', class: 'btn', 'aria-label': 'Example before', onclick: step(-1)}, '←'), h('button', {type: 'button', class: 'btn', 'aria-label': 'Next example', onclick: step(1)}, '→')),
	text, note);

	function pick(preset) {
		if (preset) onPick(preset);
	}

	return {
		node,
		show(preset) {
			select.value = preset?.id ?? '';
			text.textContent = preset?.text ?? 'Your own. Change anything: everything is decided anew by this server’s own engine, in virtual time. The link has it all.';
			const said = preset?.source?.note;
			note.hidden = !preset?.source;
			replace(note, preset?.source && [h('span', {class: 'muted'}, 'From '), h('cite', null, preset.source.title), h('span', {class: 'muted'}, '. '), said]);
		},
	};
}
