// SPDX-License-Identifier: Apache-2.0
//
// Lists that change while they are looked at.
//
//   keyed(parent, {id, make}) → update(items)  the children of a node are those of the items, in their order
//
// id(item) tells items apart. make(item) → {node, update(item)}, where update is called with each item that is another one
// than before, as JSON, and with the first; or {node}, and then the node is made anew. What is there already stays there: the node that has the focus, or selected text,
// is not moved but the others around it, and where it goes the focus goes to its neighbour.

const focusable = 'a[href], button, input, select, textarea, summary, [tabindex]';

export function keyed(parent, {id, make}) {
	let rows = new Map();
	return (items) => {
		const next = new Map();
		for (const item of items) {
			let key = id(item);
			while (next.has(key)) key += '\0';
			next.set(key, refreshed(rows.get(key), item, make));
		}
		rows = next;
		arrange(parent, [...next.values()].map((row) => row.node));
	};
}

function refreshed(row, item, make) {
	const text = JSON.stringify(item);
	if (row?.update) {
		if (row.text !== text) row.update(item);
		row.text = text;
		return row;
	}
	if (row?.text === text) return row;
	const made = {update: null, ...make(item), text};
	made.update?.(item);
	if (row) takePlace(row.node, made.node);
	return made;
}

// takePlace puts a node where another one is, with the focus if that has it.
function takePlace(old, node) {
	const at = [...old.querySelectorAll(focusable)].indexOf(document.activeElement);
	const held = old.contains(document.activeElement);
	old.replaceWith(node);
	if (held) ([...node.querySelectorAll(focusable)][Math.max(at, 0)] ?? node).focus({preventScroll: true});
}

function arrange(parent, wanted) {
	const keep = new Set(wanted);
	const held = heldIn(parent);
	const heir = held && !keep.has(held) && held.contains(document.activeElement) ? heirOf(held, keep) : null;
	for (const node of [...parent.children]) {
		if (!keep.has(node)) node.remove();
	}
	let at = parent.firstElementChild;
	for (const node of wanted) {
		if (node === held) {
			while (at !== held) { // they come later, or are placed after it
				const next = at.nextElementSibling;
				held.after(at);
				at = next;
			}
			at = held.nextElementSibling;
		} else if (node === at) {
			at = at.nextElementSibling;
		} else {
			parent.insertBefore(node, at);
		}
	}
	heir?.focus({preventScroll: true});
}

// heldIn is the child in which the focus is, or else the selected text.
function heldIn(parent) {
	const selected = getSelection();
	const within = [document.activeElement, selected?.isCollapsed === false && selected.anchorNode].find((n) => n && n !== parent && parent.contains(n));
	return [...parent.children].find((child) => child.contains(within ?? null)) ?? null;
}

// heirOf is what gets the focus of a child that goes: something in its neighbour, or what it all stands in.
function heirOf(child, keep) {
	for (const way of ['nextElementSibling', 'previousElementSibling']) {
		for (let other = child[way]; other; other = other[way]) {
			const heir = keep.has(other) && (other.matches(focusable) ? other : other.querySelector(focusable));
			if (heir) return heir;
		}
	}
	return child.parentElement.closest('[tabindex]');
}
