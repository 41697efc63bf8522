// SPDX-License-Identifier: Apache-2.0
//
//   filterForm({filter, range, change(values), refresh(), file}) → {node, load(signal), offer(rules), complain(place, err)}
//
// The filters of the violations page. Changes go to the fragment, which users can share.

import {h, replace, show} from '../ui/dom.js';
import {get} from '../shell/api.js';
import {reasons} from '../shell/vocabulary.js';
import {fields, ranges} from './query.js';

const modes = [['', 'Denied and shadow'], ['enforced', 'Denied'], ['shadow', 'Shadow']];
const texts = {
	endpoint: ['Endpoint begins with', 'GET /v1/ or /v1/'],
	address: ['Address or network', '192.0.2.0/24'],
	user: ['User', 'name, or ~… as shown'],
	key: ['Key', 'per-client:ip=…, or ~…'],
};

export function filterForm({filter, range, change, refresh, file}) {
	const rule = choice('rule', 'Rule', filter.rule, [['', 'All rules']]);
	const inputs = {
		rule,
		mode: choice('mode', 'Outcome', filter.mode, modes),
		reason: choice('reason', 'Reason', filter.reason, [['', 'Any reason'], ...reasons().map((r) => [r, words(r)])]),
	};
	for (const [name, [label, placeholder]] of Object.entries(texts)) inputs[name] = entry(name, label, placeholder, filter[name]);
	const values = () => Object.fromEntries(fields.map((name) => [name, inputs[name].control.value.trim()]));
	const apply = () => {
		const now = values();
		if (fields.some((name) => now[name] !== (filter[name] ?? ''))) change(now);
	};
	for (const {control} of Object.values(inputs)) control.addEventListener('change', apply);
	const set = fields.filter((name) => filter[name]).length;
	const wide = matchMedia('(min-width: 721px)');
	const more = h('details', {class: 'vio-more', open: wide.matches},
		h('summary', null, set ? `Filters (${set})` : 'Filters'),
		h('div', {class: 'vio-fields'}, Object.values(inputs).map((f) => f.node),
			set > 0 && h('div', {class: 'vio-clear'}, h('button', {type: 'button', class: 'btn btn-ghost',
				onclick: () => change(Object.fromEntries(fields.map((name) => [name, '']))),
			}, 'Clear filters'))),
		h('button', {type: 'submit', class: 'visually-hidden', tabindex: '-1'}, 'Apply'));
	const time = times(filter, range, change);
	const node = h('form', {class: 'card vio-form', 'aria-label': 'Filter', onsubmit: (e) => {
		e.preventDefault();
		apply();
	}},
	h('div', {class: 'row'}, time.buttons, h('span', {class: 'spread'}),
		h('button', {type: 'button', class: 'btn', id: 'vio-refresh', onclick: refresh}, 'Refresh'), file.node),
	time.custom, chips(filter, change), more);
	const offer = (names) => rule.offer(names);
	return {
		node, offer,
		// load adds the rules of the policy to the list, which may also contain deleted rules.
		async load(signal) {
			wide.addEventListener('change', () => {
				more.open ||= wide.matches;
			}, {signal});
			try {
				offer(namesIn(await get('v1/rules', {signal})));
			} catch {
				// the list still has the rules of the chart
			}
		},
		// complain shows an error next to its field.
		complain(place, err) {
			const [, name, text] = /^(\w+): (.*)$/s.exec(err.detail ?? '') ?? [];
			for (const f of Object.values(inputs)) f.showError?.('');
			if (inputs[name]?.showError) {
				more.open = true;
				inputs[name].showError(show(text, 400));
				replace(place);
				return;
			}
			replace(place, h('div', {class: 'notice notice-bad'}, h('div', null, show(err.detail ?? err.message, 400))));
		},
	};
}

// chips shows the active filters as buttons that remove them, for phones, where the fields are
// collapsed.
function chips(filter, change) {
	const set = fields.filter((name) => filter[name]);
	return h('div', {class: 'vio-chips', hidden: set.length === 0}, set.map((name) => h('button', {type: 'button', class: 'btn btn-small vio-chip',
		onclick: () => change({[name]: ''})},
	h('span', {class: 'visually-hidden'}, 'Remove the filter '), h('span', {class: 'muted'}, name), h('bdi', {class: 'vio-chip-value', dir: 'ltr'}, show(filter[name], 60)), h('span', {'aria-hidden': 'true'}, '×'))));
}

// times returns the buttons for time ranges and two fields for a custom range.
function times(filter, range, change) {
	const custom = h('div', {class: 'row vio-custom', hidden: range.name !== 'custom'});
	const from = moment('From', range.from);
	const to = moment('To', range.to);
	const apply = () => {
		const [a, b] = [Date.parse(from.control.value), Date.parse(to.control.value)];
		for (const [f, at] of [[from, a], [to, b]]) f.showError(Number.isNaN(at) ? 'Enter a date and a time' : '');
		if (a >= b) to.showError('Must be later than From');
		else if (!Number.isNaN(a + b)) change({range: '', from: new Date(a).toISOString(), to: new Date(b).toISOString()});
	};
	replace(custom, from.node, to.node, h('button', {type: 'button', class: 'btn vio-apply', onclick: apply}, 'Show'));
	for (const {control} of [from, to]) {
		control.addEventListener('keydown', (e) => {
			if (e.key !== 'Enter') return;
			e.preventDefault();
			apply();
		});
	}
	const pick = (name) => h('button', {type: 'button', id: `vio-range-${name}`, 'aria-pressed': String(range.name === name),
		onclick: () => change({range: name, from: '', to: ''})}, ranges.find(([n]) => n === name)[1]);
	const other = h('button', {type: 'button', 'aria-pressed': String(range.name === 'custom'), 'aria-expanded': String(range.name === 'custom'), onclick: () => {
		custom.hidden = range.name !== 'custom' && !custom.hidden;
		other.setAttribute('aria-expanded', String(!custom.hidden));
		custom.hidden || from.control.focus();
	}}, 'Custom');
	return {custom, buttons: h('div', {class: 'segmented', role: 'group', 'aria-label': 'Time'}, ranges.map(([name]) => pick(name)), other)};
}

function moment(label, at) {
	const local = new Date(at - new Date(at).getTimezoneOffset() * 60000).toISOString().slice(0, 19);
	return field(`vio-${label.toLowerCase()}`, label, h('input', {class: 'input', type: 'datetime-local', step: '1', value: local}));
}

function entry(name, label, placeholder, value) {
	return field(`vio-${name}`, label, h('input', {class: 'input', name, value: value ?? '', placeholder, maxlength: '512', autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false'}));
}

// field returns a control with a label and a place for errors.
function field(id, label, control) {
	const wrong = h('p', {class: 'mistake', id: `${id}-wrong`, role: 'alert'});
	control.id = id;
	return {control, node: h('div', {class: 'field'}, h('label', {for: id}, label), control, wrong), showError(text) {
		wrong.textContent = text;
		control.toggleAttribute('aria-invalid', false);
		control.removeAttribute('aria-describedby');
		if (!text) return;
		control.setAttribute('aria-invalid', 'true');
		control.setAttribute('aria-describedby', wrong.id);
	}};
}

// choice returns a list. It keeps the selected value, even if the value is no longer an option.
function choice(name, label, chosen = '', fixed) {
	const control = h('select', {class: 'select', name, id: `vio-${name}`});
	const known = new Map(fixed);
	const offer = (values) => {
		for (const v of values) known.has(v) || known.set(v, show(v, 60));
		if (document.activeElement === control) return; // do not change an open list
		replace(control, [...known].map(([value, text]) => h('option', {value, selected: value === chosen}, text)));
		control.value = chosen;
	};
	offer([chosen]);
	return {control, offer, node: h('div', {class: 'field'}, h('label', {for: control.id}, label), control)};
}

export function words(reason) {
	return show(reason.replaceAll('_', ' '), 60);
}

// namesIn returns the names of the rules of a policy in order.
function namesIn(tree) {
	return tree.policies.flatMap((p) => p.groups).flatMap((g) => g.rules).map((r) => r.name);
}
