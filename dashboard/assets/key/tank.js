// SPDX-License-Identifier: Apache-2.0

import {h, svg, replace} from '../ui/dom.js';
import {tokens} from '../ui/format.js';

const PACE = 0.12; // s per dash of the stream, for a bucket that fills in one second
const DROPS = 6; // visible at once

// tank draws a bucket as a vessel: its level, a drop for each take, a shake for each denial. It is
// decoration: the numbers next to it show the same. The moving parts are boxes, which a browser
// animates without repainting.
export function tank() {
	const fluid = h('div', {class: 'tank-fluid'}, wave('tank-wave tank-back'), wave('tank-wave'));
	const drops = h('div', {class: 'tank-drops'});
	const scale = h('div', {class: 'tank-scale'});
	const vessel = h('div', {class: 'tank-vessel'}, h('div', {class: 'tank-glass'}, fluid));
	const node = h('div', {class: 'tank', 'aria-hidden': 'true'}, h('div', {class: 'tank-stream'}, h('div')), drops, vessel, scale);
	let shown = -1;
	let marked = null;
	let paced = 0;
	vessel.addEventListener('animationend', (e) => e.target === vessel && vessel.classList.remove('shake', 'shake-shadow'));

	return {
		node,
		// update takes the current level and the continuous refill in tokens per second.
		update(level, capacity, inflow) {
			if (marked !== capacity) {
				marked = capacity;
				replace(scale, marks(capacity));
			}
			const part = capacity > 0 ? Math.min(Math.max(level / capacity, 0), 1) : 0;
			if (Math.abs(part - shown) > 0.001) {
				shown = part;
				fluid.style.transform = `translateY(${((1 - part) * 100).toFixed(2)}%)`;
			}
			node.classList.toggle('filling', inflow > 0 && part < 1);
			if (inflow !== paced && inflow > 0) {
				paced = inflow;
				node.style.setProperty('--pace', `${Math.min(Math.max((PACE * capacity) / inflow, 0.4), 8).toFixed(2)}s`);
			}
		},
		// decided animates a decision.
		decided(kind) {
			if (kind === 'elsewhere' || matchMedia('(prefers-reduced-motion: reduce)').matches) {
				return;
			}
			if (kind === 'allowed') {
				drip(drops);
				return;
			}
			vessel.classList.remove('shake', 'shake-shadow');
			void vessel.offsetWidth; // restarts the animation
			vessel.classList.add(kind === 'shadow' ? 'shake-shadow' : 'shake');
		},
	};
}

function drip(drops) {
	if (drops.childElementCount >= DROPS) {
		return;
	}
	const drop = h('span', {class: 'tank-drop'});
	drop.addEventListener('animationend', () => drop.remove());
	drops.append(drop);
}

// wave draws the water with its surface, twice as wide as the vessel so that it can move.
function wave(name) {
	return svg('svg', {class: name, viewBox: '0 0 200 160', preserveAspectRatio: 'none', focusable: 'false'},
		svg('path', {d: 'M0 4 q25 -5 50 0 t50 0 t50 0 t50 0 V160 H0 Z'}));
}

function marks(capacity) {
	return [0, 0.25, 0.5, 0.75, 1].map((part) => h('span', {class: part % 0.5 === 0 ? 'tank-mark' : 'tank-mark tank-between', style: {bottom: `${part * 100}%`}},
		part % 0.5 === 0 && tokens(capacity * part)));
}
