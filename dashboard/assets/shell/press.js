// SPDX-License-Identifier: Apache-2.0
//
// While something is being pressed the page holds still: what is replaced or moved between mouse down and mouse up is
// not clicked.
//
//   released()  null, or while something is pressed a promise that resolves as soon as it is no longer

const longest = 10000; // milliseconds: whoever has let go outside of the window is not waited for
const click = 80; // milliseconds from pointerup to click, of a finger

let held = null; // {over, done}
let timer = 0;

export function released() {
	return held?.over ?? null;
}

function press() {
	if (!held) {
		held = {};
		held.over = new Promise((resolve) => {
			held.done = resolve;
		});
	}
	letGo(longest);
}

function letGo(after) {
	if (!held) return;
	clearTimeout(timer);
	timer = setTimeout(() => {
		held.done();
		held = null;
	}, after);
}

// A slider is dragged to see what comes of it, and whoever opens a list lets go in a window of its own.
const live = 'select, input[type=range]';

addEventListener('pointerdown', (e) => e.button === 0 && !e.target.closest?.(live) && press(), true);
addEventListener('keydown', (e) => e.key === ' ' && !e.repeat && press(), true);
for (const end of ['pointerup', 'pointercancel', 'keyup', 'blur']) addEventListener(end, (e) => (end !== 'blur' || e.target === window) && letGo(click), true);
