// SPDX-License-Identifier: Apache-2.0
//
// DOM helpers. Text from outside always becomes a text node.
//
//   h(tag, props, ...children)    an HTML element
//   svg(tag, props, ...children)  an SVG element
//   clear(node), replace(node, ...children)
//   show(value, most = 160)       a string with all invisible characters escaped
//   keyText(parts)                the key of a bucket in one line of text
//   keyNode(parts)                the key as a node with separate names and values
//
// props: class, id, text, dataset, style (an object), on* (listeners), any attribute. Children: nodes, strings,
// numbers, and arrays of these; null, undefined and booleans are ignored.

const longestAttribute = 500;
const properties = new Set(['value', 'checked', 'disabled', 'selected', 'indeterminate', 'open', 'hidden', 'readOnly']);

export function h(tag, props, ...children) {
	return fill(document.createElement(tag), props, children);
}

export function svg(tag, props, ...children) {
	return fill(document.createElementNS('http://www.w3.org/2000/svg', tag), props, children);
}

export function clear(node) {
	node.replaceChildren();
	return node;
}

export function replace(node, ...children) {
	node.replaceChildren(...nodesOf(children));
	return node;
}

function fill(node, props, children) {
	for (const [name, value] of Object.entries(props ?? {})) setProp(node, name, value);
	node.append(...nodesOf(children));
	return node;
}

function nodesOf(children) {
	return children.flat(Infinity)
		.filter((c) => c !== null && c !== undefined && typeof c !== 'boolean')
		.map((c) => (c instanceof Node ? c : String(c)));
}

function setProp(node, name, value) {
	if (value === null || value === undefined) return;
	if (name === 'text') {
		node.textContent = value;
	} else if (name.startsWith('on')) {
		node.addEventListener(name.slice(2).toLowerCase(), value);
	} else if (name === 'dataset') {
		for (const [k, v] of Object.entries(value)) node.dataset[k] = short(v);
	} else if (name === 'style') {
		for (const [k, v] of Object.entries(value)) node.style.setProperty(k, v);
	} else if (properties.has(name) && node instanceof HTMLElement) {
		node[name] = value;
	} else if (name.startsWith('aria-')) {
		node.setAttribute(name, short(value));
	} else if (value !== false) {
		node.setAttribute(name, value === true ? '' : name === 'title' ? short(value) : value);
	}
}

function short(value) {
	const text = String(value);
	return text.length > longestAttribute ? text.slice(0, longestAttribute) + '…' : text;
}

// Characters that are invisible or change others: controls, format and bidi characters, lone surrogates, private and
// unassigned characters, line separators, blanks, fillers, variation selectors.
const unseen = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\u00a0\u034f\u115f\u1160\u1680\u17b4\u17b5\u2000-\u200a\u202f\u205f\u2800\u3000\u3164\ufe00-\ufe0f\uffa0\u{e0100}-\u{e01ef}]/gu;
const heaped = /(\p{M}{3})(\p{M}+)/gu; // more marks on one letter than any language needs
const letters = {'\n': '\\n', '\r': '\\r', '\t': '\\t', '\0': '\\0'};

export function show(value, most = 160) {
	const text = String(value ?? '');
	if (text.length <= most) return visible(text);
	let cut = text.slice(0, most);
	if (/[\ud800-\udbff]$/.test(cut)) cut = cut.slice(0, -1);
	return `${visible(cut)}… (${[...text].length.toLocaleString('en')} characters)`;
}

function visible(text) {
	return text.replace(heaped, (_, kept, rest) => kept + [...rest].map(escaped).join('')).replace(unseen, escaped);
}

function escaped(c) {
	if (letters[c]) return letters[c];
	const code = c.codePointAt(0);
	return code > 0xffff ? `\\u{${code.toString(16)}}` : '\\u' + code.toString(16).padStart(4, '0');
}

// The name of a part without its kind, such as x-api-key for header:x-api-key, and its value.
function partOf(part) {
	const name = String(part.name ?? '');
	const known = /^(?:header|query|cookie|jwt|attribute):(.+)$/.exec(name);
	return {name: show(known ? known[1] : name, 40), value: show(part.value, 120)};
}

export function keyText(parts) {
	if (!parts || parts.length === 0) return 'everyone';
	return parts.map(partOf).map((p) => `${p.name} ${p.value}`).join(', ');
}

export function keyNode(parts) {
	if (!parts || parts.length === 0) return h('span', {class: 'key key-all'}, 'everyone');
	return h('span', {class: 'key'}, parts.map(partOf).map((p) => h('span', {class: 'key-part'},
		h('span', {class: 'key-name'}, p.name), ' ', h('bdi', {class: 'key-value', dir: 'ltr'}, p.value))));
}
