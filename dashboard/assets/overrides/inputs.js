// SPDX-License-Identifier: Apache-2.0

// Inputs of the override dialogs.

import {h, replace} from '../ui/dom.js';
import {expiryChoices, limitFields} from './form.js';

let made = 0;

// labelled returns an input with its label and a hint.
export function labelled(label, input, hint) {
	input.id = `override-input-${++made}`;
	const note = hint ? h('p', {class: 'hint', id: `${input.id}-hint`}, hint) : null;
	if (note) {
		input.setAttribute('aria-describedby', note.id);
	}
	return h('div', {class: 'field'}, h('label', {for: input.id}, label), input, note);
}

// textInput returns a single-line input.
export function textInput(props) {
	return h('input', {class: 'input', type: 'text', autocomplete: 'off', spellcheck: 'false', ...props});
}

// choice returns a list of [value, label].
export function choice(options, chosen, onChange) {
	return h('select', {class: 'select', onchange: onChange}, options.map(([value, words]) => h('option', {value, selected: value === chosen}, words)));
}

// expiryInput asks for a lifetime.
export function expiryInput() {
	const other = textInput({placeholder: '90m'});
	const own = labelled('Other duration', other, 'such as 90m, 12h or 3d');
	const list = choice(expiryChoices, '1h', () => {
		own.hidden = list.value !== '';
		own.hidden || other.focus();
	});
	own.hidden = true;
	return {node: h('div', {class: 'fields-row'}, labelled('Duration', list), own), value: () => list.value || other.value};
}

// limitInputs asks for the numbers of a limit; of(target) switches to another limit.
export function limitInputs(target) {
	const node = h('div', {class: 'fields-row'});
	let inputs = {};
	const of = (next) => {
		inputs = {};
		replace(node, limitFields(next).map(({name, label, value, inputmode, hint}) => {
			inputs[name] = textInput({value: String(value), inputmode, required: true});
			return labelled(label, inputs[name], hint);
		}));
	};
	of(target);
	return {node, of, values: () => Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, input.value]))};
}
