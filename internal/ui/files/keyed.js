// SPDX-License-Identifier: Apache-2.0
//
// Lists that change while the user reads them.
//
//   keyed(parent, {id, make}) → update(items)  sets the children of a node to the nodes of the items, in order
//
// id(item) identifies an item. make(item) → {node, update(item)} calls update for the first item and for each item whose
// JSON changed; make(item) → {node} creates the node again instead. A node with the focus or selected text is not moved:
// the others move around it. If it is removed, its neighbor gets the focus.

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

// takePlace replaces a node with another one and moves the focus with it.
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
			while (at !== held) { // these come later
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

// heldIn is the child with the focus, or else with the selected text.
function heldIn(parent) {
	const selected = getSelection();
	const within = [document.activeElement, selected?.isCollapsed === false && selected.anchorNode].find((n) => n && n !== parent && parent.contains(n));
	return [...parent.children].find((child) => child.contains(within ?? null)) ?? null;
}

// heirOf is the element that gets the focus of a removed child: one in its neighbor, or the parent.
function heirOf(child, keep) {
	for (const way of ['nextElementSibling', 'previousElementSibling']) {
		for (let other = child[way]; other; other = other[way]) {
			const heir = keep.has(other) && (other.matches(focusable) ? other : other.querySelector(focusable));
			if (heir) return heir;
		}
	}
	return child.parentElement.closest('[tabindex]');
}
