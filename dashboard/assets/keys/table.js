// SPDX-License-Identifier: Apache-2.0

import {h, keyNode, show} from '../ui/dom.js';
import {dateTime, num, pct} from '../ui/format.js';

// countText formats a count, or its range if it is an estimate.
export function countText(key) {
	return key.error > 0 ? `${num(key.count - Math.min(key.error, key.count))}–${num(key.count)}` : num(key.count);
}

// keyHref returns the address of a key's page.
export function keyHref(key) {
	return `#/key?${new URLSearchParams(key.rule ? {key: key.key, rule: key.rule} : {key: key.key})}`;
}

// keyParts returns a node with the parts of a key.
export function keyParts(key) {
	const node = keyNode(key.parts);
	if (key.mask) {
		node.append(' ', h('span', {class: 'key-hash', title: 'a hash that identifies the key'}, `~${key.mask}`));
	}
	if (key.cut) {
		node.append(' ', h('span', {class: 'badge', title: 'only the beginning of this long key is stored'}, 'cut'));
	}
	return node;
}

// waitText formats the rest of a wait that ends at a local time, or Infinity.
export function waitText(ends, now = Date.now()) {
	if (ends === Infinity) {
		return 'never';
	}
	const left = (ends - now) / 1000;
	if (!(left > 0)) {
		return 'now';
	}
	if (left < 10) {
		return `${left.toFixed(1)} s`;
	}
	if (left < 120) {
		return `${Math.ceil(left)} s`;
	}
	return left < 7200 ? `${Math.ceil(left / 60)} min` : left < 172800 ? `${Math.ceil(left / 3600)} h` : `${Math.ceil(left / 86400)} d`;
}

const columns = [
	{name: 'key', label: 'Key', sort: (k) => k.key},
	{name: 'count', label: 'Count', number: true, sort: (k) => k.count},
	{name: 'share', label: 'Share of rule', sort: (k) => k.share},
	{name: 'first', label: 'First seen', sort: (k) => Date.parse(k.first)},
	{name: 'last', label: 'Last seen', sort: (k) => Date.parse(k.last)},
	{name: 'retry', label: 'Retry after', number: true, sort: (k) => k.ends},
];

const MOST_HELD = 250; // rows kept while the pointer rests on the table

// keyTable returns a table of keys that is updated in place: {node, update(top, came), tick(now)}.
// Rows keep their order while the pointer or the focus is on them, so that a click does not miss.
export function keyTable(options) {
	return new KeyTable(options);
}

class KeyTable {
	constructor({caption, kind, onOrder}) {
		this.columns = columns.filter((c) => kind !== 'near' || c.name !== 'retry');
		this.onOrder = onOrder;
		this.by = this.columns.find((c) => c.name === 'count');
		this.down = true;
		this.rows = new Map();
		this.keys = [];
		this.held = false;
		this.heads = this.columns.map((c) => h('th', {scope: 'col', role: 'columnheader', class: `col-${c.name}${c.number ? ' num' : ''}`, 'aria-sort': c === this.by ? 'descending' : null},
			h('button', {type: 'button', class: 'sort', onclick: () => this.sort(c)}, c.label)));
		this.body = h('tbody', {role: 'rowgroup'});
		this.node = h('table', {class: `table keys-table kind-${kind}`, role: 'table'},
			h('caption', {class: 'visually-hidden'}, caption), h('thead', {role: 'rowgroup'}, h('tr', {role: 'row'}, this.heads)), this.body);
		const release = () => requestAnimationFrame(() => this.held && !this.holds() && this.place(true));
		this.body.addEventListener('pointerleave', release);
		this.body.addEventListener('focusout', release);
	}

	holds() {
		return this.body.matches(':hover') || this.body.contains(document.activeElement);
	}

	sort(column) {
		this.down = this.by === column ? !this.down : column.name !== 'key';
		this.by = column;
		this.columns.forEach((c, i) => {
			if (c === column) {
				this.heads[i].setAttribute('aria-sort', this.down ? 'descending' : 'ascending');
			} else {
				this.heads[i].removeAttribute('aria-sort');
			}
		});
		this.place(false);
	}

	compare(a, b) {
		const [x, y] = [this.by.sort(a), this.by.sort(b)];
		return (x < y ? -1 : x > y ? 1 : 0) * (this.down ? -1 : 1) || (idOf(a) < idOf(b) ? -1 : 1);
	}

	// place sorts the rows. If the order is held, it only appends new rows.
	place(mayHold) {
		this.held = mayHold && this.holds();
		this.onOrder?.(this.held);
		const wanted = this.keys.toSorted((a, b) => this.compare(a, b)).map((k) => this.rows.get(idOf(k)).node);
		if (this.held) {
			this.body.append(...wanted.filter((node) => node.parentNode !== this.body));
			if (this.rows.size > MOST_HELD) {
				this.forget((row) => !row.matches(':hover, :focus-within'));
			}
			return;
		}
		this.forget(() => true);
		glide(this.body, () => wanted.forEach((node, i) => {
			if (this.body.children[i] !== node) {
				this.body.insertBefore(node, this.body.children[i] ?? null);
			}
		}));
	}

	// forget removes the rows of keys that are no longer listed.
	forget(may) {
		const present = new Set(this.keys.map(idOf));
		for (const [id, row] of this.rows) {
			if (!present.has(id) && may(row.node)) {
				row.node.remove();
				this.rows.delete(id);
			}
		}
	}

	// update takes a response of v1/top and its local time of arrival.
	update(top, came) {
		this.keys = keysOf(top, came);
		for (const key of this.keys) {
			const id = idOf(key);
			if (!this.rows.has(id)) {
				this.rows.set(id, makeRow(key, this.columns));
			}
			this.rows.get(id).update(key, Date.parse(top.at));
		}
		const present = new Set(this.keys.map(idOf));
		for (const [id, row] of this.rows) {
			row.node.classList.toggle('gone', !present.has(id));
		}
		this.place(true);
	}

	// tick updates the countdowns.
	tick(now) {
		for (const row of this.rows.values()) {
			row.tick(now);
		}
	}
}

// keysOf returns the keys of a response with their share of the rule's total, their rate, and the
// end of their wait.
function keysOf(top, came) {
	const totals = new Map(top.rules.map((r) => [r.rule, r.total]));
	const seconds = Math.max((Date.parse(top.at) - Date.parse(top.since)) / 1000, 1);
	return top.keys.map((k) => ({
		...k, masked: top.masked, share: k.count / Math.max(totals.get(k.rule) ?? k.count, 1), perSecond: k.count / seconds,
		ends: k.retry_after === null ? Infinity : k.retry_after > 0 ? came + k.retry_after * 1000 : 0,
	}));
}

function idOf(key) {
	return `${key.limit}\n${key.key}`;
}

// glide animates rows to their new positions, unless the viewer prefers reduced motion.
function glide(body, move) {
	const still = matchMedia('(prefers-reduced-motion: reduce)').matches;
	const before = still ? null : new Map([...body.children].map((row) => [row, row.offsetTop]));
	move();
	for (const row of still ? [] : body.children) {
		const from = before.get(row);
		if (from !== undefined && from !== row.offsetTop) {
			row.animate([{transform: `translateY(${from - row.offsetTop}px)`}, {transform: 'none'}], {duration: 260, easing: 'ease-out'});
		}
	}
}

function makeRow(key, shown) {
	const href = keyHref(key);
	const meter = h('span', {class: 'share-bar', 'aria-hidden': 'true'}, h('span', {class: 'share-fill'}));
	const cells = {
		key: [h('a', {href, class: 'key-link'}, keyParts(key)), h('span', {class: 'key-limit'}, show(key.limit))],
		count: [h('span', {class: 'key-count'}), h('span', {class: 'per'})],
		share: [meter, h('span', {class: 'share-text'})],
		first: [h('time')], last: [h('time')], retry: [h('span', {class: 'wait'})],
	};
	const node = h('tr', {role: 'row', onclick: (e) => {
		if (!e.target.closest('a') && String(getSelection()) === '') {
			location.hash = href;
		}
	}}, ...shown.map((c) => h(c.name === 'key' ? 'th' : 'td', {
		role: c.name === 'key' ? 'rowheader' : 'cell', scope: c.name === 'key' ? 'row' : null,
		class: `col-${c.name}${c.number ? ' num' : ''}`, dataset: {label: c.label},
	}, ...cells[c.name])));
	let ends = 0;
	const tick = (now) => {
		const text = waitText(ends, now);
		set(cells.retry[0], text);
		cells.retry[0].classList.toggle('waiting', text !== 'now');
	};
	return {
		node,
		tick,
		update(k, at) {
			ends = k.ends;
			set(cells.count[0], countText(k));
			set(cells.count[1], perSecond(k.perSecond));
			set(cells.share[1], pct(Math.min(k.share, 1), 1));
			meter.firstChild.style.width = `${(100 * Math.min(k.share, 1)).toFixed(1)}%`;
			stamp(cells.first[0], k.first, at);
			stamp(cells.last[0], k.last, at);
			tick(Date.now());
		},
	};
}

// perSecond formats a rate with two significant digits.
function perSecond(n) {
	return `${n >= 9.95 ? num(Math.round(n)) : Number(n.toPrecision(2))}/s`;
}

function stamp(node, text, at) {
	set(node, sinceText(at - Date.parse(text)));
	if (node.dateTime !== text) {
		node.dateTime = text;
		node.title = dateTime(new Date(text));
	}
}

// sinceText formats an age in ms.
function sinceText(ms) {
	const s = Math.floor(ms / 1000);
	return s < 1 ? 'now' : s < 120 ? `${s} s ago` : s < 7200 ? `${Math.floor(s / 60)} min ago` : `${Math.floor(s / 3600)} h ago`;
}

// set changes a text only if it differs, to avoid a layout.
function set(node, text) {
	if (node.textContent !== text) {
		node.textContent = text;
	}
}
