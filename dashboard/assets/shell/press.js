// SPDX-License-Identifier: Apache-2.0
//
// Pauses updates during a press: an element that is replaced or moved between pointerdown and pointerup gets no click.
//
//   released()  null, or during a press a promise that resolves at its end

const longest = 10000; // milliseconds, because a release outside of the window is not reported
const click = 80; // milliseconds from pointerup to click on touch screens

let held = null; // {over, done, by}: by is the pointer ID or the key, and null after the release
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

// Sliders and number steppers show their effect while pressed, and an open list reports no release.
const live = 'select, input[type=range], input[type=number]';

addEventListener('pointerdown', (e) => e.isPrimary && e.button === 0 && !e.target.closest?.(live) && press(e.pointerId), true);
for (const end of ['pointerup', 'pointercancel']) addEventListener(end, (e) => letGo(e.pointerId), true);
// Scrollbars, menus and drags may not report the release of the button.
addEventListener('pointermove', (e) => e.buttons === 0 && letGo(e.pointerId), true);
addEventListener('keydown', (e) => e.key === ' ' && !e.repeat && press(e.key), true);
addEventListener('keyup', (e) => letGo(e.key), true);
addEventListener('blur', (e) => e.target === window && held && letGo(held.by), true);
