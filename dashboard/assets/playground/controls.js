// SPDX-License-Identifier: Apache-2.0
//
// Form fields of the playground. Each has the JSON pointer of its value, which the server's errors contain.
//
//   numberField({label, value, from, to, decimals, zero, unit, place, onInput})  a slider, and the number next to it
//   choiceField({label, value, options, place, onInput})     options: [[value, label], …]
//   partsField({label, value, options, place, onInput})      the same as buttons
//   textField({label, value, place, rows, hint, onInput})
//   showMistakes(root, errors) → the errors without a field

import {h} from '../ui/dom.js';

let fields = 0;

// steps are the round values at which a slider stops.
export function steps(from, to, decimals, zero) {
	const all = zero ? [0] : [];
	for (let size = decimals ? 0.1 : 1; size <= to; size *= 10) {
		for (const m of size < 10 ? [1, 2, 3, 4, 5, 6, 7, 8, 9] : [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9]) {
			const v = Number((m * size).toPrecision(3));
			if (v >= from && v <= to) all.push(v);
		}
	}
	return all;
}

function nearest(all, value) {
	let best = 0;
	for (let i = 1; i < all.length; i++) {
		if (Math.abs(Math.log((all[i] + 0.01) / (value + 0.01))) < Math.abs(Math.log((all[best] + 0.01) / (value + 0.01)))) best = i;
	}
	return best;
}

function framed(label, id, place, ...content) {
	return h('div', {class: 'play-field', dataset: {place}}, h('label', {for: id}, label), content,
		h('p', {class: 'mistake', id: `${id}-mistake`, hidden: true}));
}

export function numberField({label, value, from = 1, to = 1000, decimals = false, zero = false, unit = '', place, onInput}) {
	const id = `play-${++fields}`;
	const all = steps(from, to, decimals, zero);
	const number = h('input', {class: 'input play-number', id, type: 'text', inputmode: 'decimal', autocomplete: 'off', value: value ?? '',
		dataset: {key: place}, 'aria-describedby': `${id}-mistake`});
	const range = h('input', {class: 'slider', type: 'range', min: 0, max: all.length - 1, step: 1, 'aria-label': `${label}, slider`, dataset: {key: `${place}/slider`}});
	const follow = () => {
		const v = Number(number.value);
		range.value = String(nearest(all, Number.isFinite(v) ? v : 0));
		range.setAttribute('aria-valuetext', `${number.value} ${unit}`.trim());
		range.style.setProperty('--part', `${100 * Number(range.value) / Math.max(1, all.length - 1)}%`);
	};
	follow();
	range.addEventListener('input', () => {
		number.value = String(all[Number(range.value)]);
		follow();
		onInput(number.value);
	});
	number.addEventListener('input', () => {
		follow();
		onInput(number.value.trim());
	});
	return framed(label, id, place, h('div', {class: 'play-pair'}, range, number, unit && h('span', {class: 'play-unit'}, unit)));
}

export function choiceField({label, value, options, place, onInput}) {
	const id = `play-${++fields}`;
	const known = options.some(([v]) => v === value) ? options : [...options, [value, value]];
	const select = h('select', {class: 'select', id, dataset: {key: place}, 'aria-describedby': `${id}-mistake`, onchange: () => onInput(select.value)},
		known.map(([v, text]) => h('option', {value: v, selected: v === value}, text)));
	return framed(label, id, place, select);
}

export function partsField({label, value, options, place, onInput}) {
	const id = `play-${++fields}`;
	const buttons = options.map(([v, text]) => h('button', {type: 'button', 'aria-pressed': String(v === value), dataset: {key: `${place}/${v}`}, onclick: () => onInput(v)}, text));
	return h('div', {class: 'play-field', dataset: {place}, role: 'group', 'aria-labelledby': id}, h('span', {class: 'label', id}, label),
		h('div', {class: 'segmented'}, buttons), h('p', {class: 'mistake', hidden: true}));
}

export function textField({label, value, place, rows = 1, hint = '', onInput}) {
	const id = `play-${++fields}`;
	const props = {id, value: value ?? '', dataset: {key: place}, 'aria-describedby': `${id}-mistake`, spellcheck: 'false', autocomplete: 'off', oninput: () => onInput(input.value)};
	const input = rows > 1 ? h('textarea', {class: 'textarea', rows, ...props}) : h('input', {class: 'input', type: 'text', ...props});
	return framed(label, id, place, input, hint && h('p', {class: 'hint'}, hint));
}

// showMistakes puts each error next to its field and removes earlier ones.
export function showMistakes(root, errors) {
	const left = [];
	for (const field of root.querySelectorAll('[data-place]')) mark(field, '');
	const texts = new Map();
	for (const m of errors) {
		const field = [...root.querySelectorAll('[data-place]')].find((f) => f.dataset.place === m.pointer || `${m.pointer}`.startsWith(`${f.dataset.place}/`));
		if (field) texts.set(field, [...(texts.get(field) ?? []), m.hint ? `${m.detail}: ${m.hint}` : m.detail]);
		else left.push(m);
	}
	for (const [field, list] of texts) mark(field, list.length > 1 ? `${list[0]} (and ${list.length - 1} more)` : list[0]);
	return left;
}

function mark(field, text) {
	const note = field.querySelector('.mistake');
	note.textContent = text ? `${text[0].toUpperCase()}${text.slice(1)}.` : '';
	note.hidden = !text;
	for (const input of field.querySelectorAll('.input, .select, .textarea')) {
		if (text) input.setAttribute('aria-invalid', 'true');
		else input.removeAttribute('aria-invalid');
	}
}
