// SPDX-License-Identifier: Apache-2.0
//
// While something is being pressed the page holds still: what is replaced or moved between mouse down and mouse up is
// not clicked.
//
//   released()  null, or while something is pressed a promise that resolves as soon as it is no longer

const longest = 10000; // milliseconds: whoever has let go outside of the window is not waited for
const click = 80; // milliseconds from pointerup to click, of a finger

let held = null; // {over, done, by}: by is the pointer's number or the key, and null once that is let go
let timer = 0;

export function released() {
	return held?.over ?? null;
}

function press(by) {
	if (!held) {
		held = {};
		held.over = new Promise((resolve) => {
			held.done = resolve;
		});
	}
	held.by = by;
	endAfter(longest);
}

function letGo(by) {
	if (held?.by !== by) return; // another finger or key
	held.by = null;
	endAfter(click);
}

function endAfter(wait) {
	clearTimeout(timer);
	timer = setTimeout(() => {
		held.done();
		held = null;
	}, wait);
}

// A slider is dragged, and a number stepped, to see what comes of it, and whoever opens a list lets go in a window of its own.
const live = 'select, input[type=range], input[type=number]';

addEventListener('pointerdown', (e) => e.isPrimary && e.button === 0 && !e.target.closest?.(live) && press(e.pointerId), true);
for (const end of ['pointerup', 'pointercancel']) addEventListener(end, (e) => letGo(e.pointerId), true);
// Scrollbars, menus and what is dragged may keep to themselves that the button was let go.
addEventListener('pointermove', (e) => e.buttons === 0 && letGo(e.pointerId), true);
addEventListener('keydown', (e) => e.key === ' ' && !e.repeat && press(e.key), true);
addEventListener('keyup', (e) => letGo(e.key), true);
addEventListener('blur', (e) => e.target === window && held && letGo(held.by), true);
