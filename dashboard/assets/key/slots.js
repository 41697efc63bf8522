// SPDX-License-Identifier: Apache-2.0

import {h, show} from '../ui/dom.js';
import {dur} from '../ui/format.js';
import {keyed} from '../ui/keyed.js';
import {algorithmOf} from '../shell/vocabulary.js';

const WHOLE = 32; // digits of a slot; callers without the role operate get fewer

// slotTable shows the slots of a concurrency limit that requests hold. It is hidden for other limits.
export function slotTable() {
	const body = h('tbody');
	const rows = keyed(body, {id: (slot) => slot.id, make: makeRow});
	const table = h('table', {class: 'table'},
		h('caption', {class: 'visually-hidden'}, 'Held slots, the first to end first'),
		h('thead', null, h('tr', null, h('th', {scope: 'col'}, 'Slot'), h('th', {scope: 'col', class: 'num'}, 'Ends in'))), body);
	const note = h('p', {class: 'slots-note muted'});
	const node = h('section', {class: 'card card-flush key-slots', 'aria-label': 'Held slots'}, h('div', {class: 'card-head'}, h('h2', null, 'Held slots')), table, note);
	return {
		node,
		// update takes the response of v1/bucket.
		update({algorithm, capacity, remaining, slots = []}) {
			node.hidden = algorithmOf(algorithm).shape !== 'slots';
			table.hidden = slots.length === 0;
			rows(slots);
			const more = Math.max(capacity - remaining - slots.length, 0);
			note.textContent = table.hidden ? 'No request holds a slot.' : more > 0 ? `and ${more} more` : '';
			note.hidden = note.textContent === '';
		},
	};
}

function makeRow() {
	const name = h('td', {class: 'mono slot-id'});
	const left = h('td', {class: 'num nowrap', title: 'unless its request renews or releases it'});
	return {
		node: h('tr', null, name, left),
		update(slot) {
			name.textContent = show(slot.id) + (slot.id.length < WHOLE ? '…' : '');
			left.textContent = dur(Math.ceil(slot.left));
		},
	};
}
