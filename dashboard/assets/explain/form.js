// SPDX-License-Identifier: Apache-2.0
//
// The form for a request: pasted text, or attributes.
//
//   requestForm({tree, onExplain(request), onMistake(), compact})  {node, set(attributes, cost), read(text), request(), missing(names)}
//     request: {attributes: {name: value}, cost: number or absent}. onExplain is called on submit, onMistake if the
//     inputs are not a valid request.
//   queryOf(request, tree)  the request as a URL query, without values that may be credentials
//   requestOf(params)       the inverse of queryOf: {attributes, cost, missing: names that the URL omits}

import {h, replace, show} from '../ui/dom.js';
import {post} from '../shell/api.js';
import {secretName} from '../rules/words.js';

const unspoken = 'without'; // the parameter with the names that the URL omits
const plain = ['method', 'path', 'host', 'ip:address'];

export function requestForm({tree, onExplain, onMistake, compact = false}) {
	const uid = `request-${Math.random().toString(36).slice(2, 8)}`;
	const rows = h('div', {class: 'attr-rows', role: 'group', 'aria-label': 'Attributes'});
	const cost = h('input', {class: 'input', id: `${uid}-cost`, inputmode: 'decimal', placeholder: 'set by the policy', autocomplete: 'off'});
	const names = h('datalist', {id: `${uid}-names`}, [...new Set([...plain, ...tree.attributes.map((a) => a.name)])].map((value) => h('option', {value})));
	const said = h('div', {class: 'request-said', role: 'status'});
	const text = h('textarea', {class: 'textarea request-text', id: `${uid}-text`, spellcheck: 'false', autocomplete: 'off', autocapitalize: 'off', rows: compact ? '3' : '6',
		'aria-describedby': `${uid}-hint`, placeholder: "curl 'https://api.example.com/v1/x' -H 'X-Api-Key: k1'"});

	const row = (name, value) => attributeRow({name, value, names: names.id, secret: (n) => secretName(n, tree), remove: (node) => {
		const next = node.nextElementSibling ?? node.previousElementSibling;
		node.remove();
		(next?.querySelector('input') ?? add).focus();
	}});
	const add = h('button', {type: 'button', class: 'btn btn-small', onclick: () => {
		const made = row('', '');
		rows.append(made);
		made.querySelector('input').focus();
	}}, 'Add an attribute');
	const ask = () => {
		const mistake = wrong(rows, cost);
		if (mistake) refuse(mistake);
		else onExplain(form.request());
	};
	const say = (lines, bad) => replace(said, lines.length > 0 && h('div', {class: `notice ${bad ? 'notice-bad' : ''}`, role: bad ? 'alert' : null},
		h('ul', {class: 'plain'}, lines.map((l) => h('li', null, l)))));
	const refuse = (mistake) => {
		say([mistake], true);
		onMistake();
	};
	const readText = () => form.read(text.value);
	text.addEventListener('keydown', (e) => {
		if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) {
			e.preventDefault();
			readText();
		}
	});
	text.addEventListener('paste', () => text.value === '' && setTimeout(readText)); // only if the paste fills the field

	const form = {
		node: h('div', {class: 'request-form stack-small'},
			h('form', {class: 'stack-small', novalidate: true, onsubmit: (e) => {
				e.preventDefault();
				readText();
			}}, h('div', {class: 'field'}, h('label', {for: text.id}, 'Paste a request'), text,
				h('p', {class: 'hint', id: `${uid}-hint`}, 'A curl command (in a browser: “Copy as cURL”), the text of an HTTP request, or lines such as header:x-api-key=k1. The request is parsed but never sent.')),
			h('div', {class: 'row'}, h('button', {class: compact ? 'btn' : 'btn btn-primary', type: 'submit'}, 'Parse and explain'))),
			said,
			h('form', {class: 'stack-small request-rows', novalidate: true, onsubmit: (e) => {
				e.preventDefault();
				ask();
			}}, h(compact ? 'h3' : 'h2', null, 'Attributes'), rows, names,
			h('div', {class: 'attr-foot'}, add, h('label', {class: 'attr-cost', for: cost.id}, 'Cost', cost),
				h('button', {class: compact ? 'btn btn-primary' : 'btn', type: 'submit'}, 'Explain')))),
		set(attributes, amount) {
			const order = (n) => (plain.indexOf(n) + plain.length + 1) % (plain.length + 1) || (plain.includes(n) ? 0 : 99);
			const list = Object.entries(attributes).sort(([a], [b]) => order(a) - order(b) || (a < b ? -1 : 1));
			replace(rows, list.map(([n, v]) => row(n, v)));
			cost.value = amount === undefined || amount === null ? '' : String(amount);
			say([]);
		},
		async read(written) {
			text.value = written;
			text.removeAttribute('aria-invalid');
			if (written.trim() === '') {
				text.focus();
				return;
			}
			try {
				const r = await post('v1/request', {text: written});
				this.set(r.attributes, r.cost);
				say([...r.notes.map((n) => sentence(show(n, 400))), r.unread.length > 0 && `No rule uses ${r.unread.map((n) => show(n, 60)).join(', ')}.`].filter(Boolean), false);
				onExplain(this.request());
			} catch (e) {
				text.setAttribute('aria-invalid', 'true');
				select(text, e.message);
				refuse(show(e.message, 400));
			}
		},
		request: () => ({attributes: Object.fromEntries([...rows.children].map(pairOf).filter(([n]) => n !== '')), ...(cost.value.trim() && {cost: Number(cost.value)})}),
		missing: (list) => say(list.map((n) => `The link omits the value of ${show(n, 60)}, which may be a credential. Enter it below.`), false),
	};
	return form;
}

function pairOf(node) {
	const [name, value] = node.querySelectorAll('input');
	return [name.value.trim(), value.value];
}

// attributeRow has the name and value of an attribute and a button that removes it.
function attributeRow({name, value, names, secret, remove}) {
	const nameInput = h('input', {class: 'input mono', list: names, value: name, 'aria-label': 'Attribute', placeholder: 'header:x-api-key', autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false'});
	const valueInput = h('input', {class: 'input mono', value, autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false'});
	const out = h('button', {type: 'button', class: 'btn btn-ghost btn-icon', onclick: () => remove(node)}, '×');
	const node = h('div', {class: 'attr-row'}, nameInput, valueInput, out);
	const named = () => {
		const now = nameInput.value.trim();
		valueInput.classList.toggle('secret', secret(now));
		valueInput.setAttribute('aria-label', `Value of ${show(now, 60) || 'the attribute'}`);
		out.setAttribute('aria-label', `Remove ${show(now, 60) || 'this attribute'}`);
		valueInput.placeholder = now === 'ip:address' ? '192.0.2.1' : '';
	};
	nameInput.addEventListener('input', named);
	named();
	return node;
}

// wrong returns the first error of the rows and moves the focus there.
function wrong(rows, cost) {
	const seen = new Set();
	for (const node of rows.children) {
		const [name, value] = pairOf(node);
		const at = node.querySelector('input');
		if (name === '' && value !== '') {
			at.focus();
			return 'Enter the attribute of this value, such as header:x-api-key.';
		}
		if (name !== '' && seen.has(name.toLowerCase())) {
			at.focus();
			return `${show(name, 64)} occurs twice.`;
		}
		seen.add(name.toLowerCase());
	}
	if (cost.value.trim() && !(Number(cost.value) > 0)) {
		cost.focus();
		return 'The cost must be a number above 0, such as 1 or 0.5.';
	}
	return '';
}

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? '' : '.');

// select moves the cursor to an error.
function select(text, message) {
	const place = /^line (\d+), column (\d+)/.exec(message);
	if (!place) return;
	const before = text.value.split('\n').slice(0, Number(place[1]) - 1).reduce((n, line) => n + line.length + 1, 0);
	const at = before + [...(text.value.split('\n')[Number(place[1]) - 1] ?? '')].slice(0, Number(place[2]) - 1).join('').length;
	text.focus();
	text.setSelectionRange(at, /\s|$/.exec(text.value.slice(at)).index + at);
}

export function queryOf({attributes, cost}, tree) {
	const query = new URLSearchParams();
	for (const [name, value] of Object.entries(attributes)) {
		if (secretName(name, tree)) query.append(unspoken, name);
		else query.append(`a.${name}`, value);
	}
	if (cost) query.set('cost', String(cost));
	return query.toString();
}

export function requestOf(params) {
	const request = {attributes: {}, missing: params.getAll(unspoken)};
	for (const [name, value] of params) {
		if (name.startsWith('a.')) request.attributes[name.slice(2)] = value;
	}
	for (const name of request.missing) request.attributes[name] = '';
	if (params.get('cost')) request.cost = Number(params.get('cost'));
	return request;
}
