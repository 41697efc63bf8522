// SPDX-License-Identifier: Apache-2.0
//
// Dialogs and messages.
//
//   confirmAction({title, body, confirm, cancel, danger, fields, check}) → Promise of {name: value, …}, or null
//     body: nodes or strings. fields: [{name, label, type, required, value, hint, options, placeholder, mistake}], type is
//     text, number, password, textarea, select (options: [value or [value, label], …]), checkbox or another input type.
//     check(values) returns the errors, as {name: text} or a text, or nothing. It may be async: the dialog stays open
//     meanwhile, so check can also perform the action and report its failure.
//   ask(…)  the same
//   toast({text, undo, undoLabel, kind})  shows a message; undo is an async function. kind: ok, bad or empty
//   activity                  the messages, newest first: [{at, text, kind, undo, undone}]
//   onActivity(f)             calls f after changes; returns a function that stops it
//   undoActivity(entry)       undoes an entry

import {h, replace} from '../ui/dom.js';
import {released} from './press.js';

const toastStays = 8000; // milliseconds; twice as long with an undo
const mostActivity = 50;

let dialogs = 0;

export function confirmAction(question) {
	return ask(question);
}

export function ask({title, body = [], confirm = 'OK', cancel = 'Cancel', danger = false, fields = [], check = () => null}) {
	const id = `dialog-${++dialogs}`;
	const inputs = fields.map((f) => fieldOf(f, `${id}-${f.name}`));
	const wrong = h('p', {class: 'mistake', role: 'alert'});
	const yes = h('button', {class: `btn ${danger ? 'btn-danger' : 'btn-primary'}`, type: 'submit'}, confirm);
	const form = h('form', {class: 'dialog-form', novalidate: true},
		h('h2', {id}, title), h('div', {class: 'dialog-body'}, wrapText(body)), inputs.map((i) => i.node), wrong,
		h('div', {class: 'dialog-foot'}, h('button', {class: 'btn', type: 'button', onclick: () => node.close()}, cancel), yes));
	const node = h('dialog', {class: 'dialog', 'aria-labelledby': id}, form);
	let answer = null;
	form.addEventListener('submit', async (e) => {
		e.preventDefault();
		yes.disabled = true;
		const values = await accepted(inputs, check, wrong);
		yes.disabled = false;
		if (!values) return;
		answer = values;
		node.close();
	});
	node.addEventListener('mousedown', (e) => {
		if (e.target === node) node.close(); // the backdrop
	});
	return new Promise((resolve) => {
		node.addEventListener('close', () => {
			node.remove();
			resolve(answer);
		});
		document.body.append(node);
		node.showModal();
		(inputs[0]?.input ?? (danger ? form.querySelector('button[type=button]') : yes)).focus();
	});
}

function wrapText(body) {
	return [body].flat(Infinity).filter(Boolean).map((b) => (b instanceof Node ? b : h('p', null, b)));
}

// accepted returns the values, or null after showing their errors.
async function accepted(inputs, check, wrong) {
	wrong.textContent = '';
	const values = {};
	let first = null;
	for (const i of inputs) {
		values[i.name] = i.value();
		const mistake = i.required && values[i.name] === '' ? `${i.label} is required.` : i.input.validity?.valid === false ? i.input.validationMessage : '';
		i.say(mistake);
		if (mistake) first ??= i;
	}
	if (!first) {
		let said;
		try {
			said = await check(values);
		} catch (e) {
			said = e.message;
		}
		if (typeof said === 'string') wrong.textContent = said;
		for (const i of inputs) {
			const mistake = typeof said === 'object' ? said?.[i.name] : '';
			i.say(mistake ?? '');
			if (mistake) first ??= i;
		}
		if (typeof said === 'string' && said) return null;
	}
	first?.input.focus();
	return first ? null : values;
}

function fieldOf(f, id) {
	const {name, label, type = 'text', required = false, value = '', hint, options = [], placeholder, mistake = '', min, max, step} = f;
	const described = `${id}-hint ${id}-mistake`;
	const common = {id, name, required, 'aria-describedby': described, autocomplete: 'off', spellcheck: 'false'};
	const wrong = h('p', {class: 'mistake', id: `${id}-mistake`, 'aria-live': 'polite'}, mistake);
	const note = h('p', {class: 'hint', id: `${id}-hint`}, hint ?? '');
	let input;
	if (type === 'textarea') {
		input = h('textarea', {...common, class: 'textarea', placeholder, value});
	} else if (type === 'select') {
		input = h('select', {...common, class: 'select'}, options.map((o) => {
			const [v, text] = Array.isArray(o) ? o : typeof o === 'object' ? [o.value, o.label] : [o, o];
			return h('option', {value: v, selected: v === f.value}, text);
		}));
	} else if (type === 'checkbox') {
		input = h('input', {...common, type, checked: Boolean(value)});
	} else {
		input = h('input', {...common, class: 'input', type, placeholder, min, max, step, value});
	}
	const node = type === 'checkbox' ? h('div', {class: 'field'}, h('label', {class: 'check'}, input, label), note, wrong) :
		h('div', {class: 'field'}, h('label', {for: id}, label), input, note, wrong);
	const say = (text) => {
		wrong.textContent = text;
		if (text) input.setAttribute('aria-invalid', 'true');
		else input.removeAttribute('aria-invalid');
	};
	if (mistake) say(mistake);
	return {name, label, required, input, node, say, value: () => (type === 'checkbox' ? input.checked : input.value)};
}

export const activity = [];
const activityListeners = new Set();

export function onActivity(f) {
	activityListeners.add(f);
	return () => activityListeners.delete(f);
}

function changed() {
	for (const f of [...activityListeners]) f(activity);
}

export function toast({text, undo = null, undoLabel = 'Undo', kind = ''}) {
	const entry = {at: new Date(), text, kind, undo, undoLabel, undone: false, busy: false};
	activity.unshift(entry);
	activity.splice(mostActivity);
	changed();
	showToast(entry);
	return entry;
}

export async function undoActivity(entry) {
	if (!entry.undo || entry.undone || entry.busy) return;
	entry.busy = true;
	changed();
	try {
		await entry.undo();
		entry.undone = true;
		toast({text: `Undone: ${entry.text}`, kind: 'ok'});
	} catch (e) {
		toast({text: `Not undone: ${entry.text} ${e.message}`, kind: 'bad'});
	} finally {
		entry.busy = false;
		changed();
	}
}

async function showToast(entry) {
	await released(); // the toast may cover the pressed element
	const host = document.getElementById('toasts');
	const node = h('div', {class: `toast ${entry.kind ? `toast-${entry.kind}` : ''}`});
	let timer = 0;
	let from = null; // the element that had the focus before
	const leave = () => {
		clearTimeout(timer);
		const held = node.contains(document.activeElement);
		node.remove();
		if (held) (from?.isConnected ? from : document.getElementById('main')).focus({preventScroll: true});
	};
	const late = async () => {
		await released();
		node.matches(':hover, :focus-within') || leave();
	};
	const wait = () => {
		clearTimeout(timer);
		timer = setTimeout(late, entry.undo ? 2 * toastStays : toastStays);
	};
	node.addEventListener('focusin', (e) => {
		if (!node.contains(e.relatedTarget)) from = e.relatedTarget?.closest('.toast') ? null : e.relatedTarget;
	});
	replace(node, h('span', {class: 'toast-text'}, entry.text),
		entry.undo && h('button', {class: 'btn btn-small', type: 'button', onclick: () => {
			leave();
			undoActivity(entry);
		}}, entry.undoLabel),
		h('button', {class: 'btn btn-ghost btn-small', type: 'button', 'aria-label': 'Close message', onclick: leave}, h('span', {'aria-hidden': 'true'}, '×')));
	for (const stay of ['mouseenter', 'focusin']) node.addEventListener(stay, () => clearTimeout(timer));
	for (const go of ['mouseleave', 'focusout']) node.addEventListener(go, wait);
	host.append(node);
	while (host.children.length > 4) (host.querySelector('.toast:not(:hover, :focus-within, :last-child)') ?? host.firstChild).remove();
	wait();
}
