// SPDX-License-Identifier: Apache-2.0

import {svg, replace} from './ui/dom.js';
import {tokens} from './ui/format.js';

const WIDTH = 132;
const HEIGHT = 190;
const TOP = 26; // of the vessel
const BOTTOM = 178;
const LEFT = 18;
const RIGHT = 92;
const DROPS = 6; // that fall at once

// tank draws a bucket as a vessel: how full it is, a drop for what is taken, a shake
// for what is denied. It is decoration beside the numbers, which say the same.
export function tank() {
	const surface = svg('path', {class: 'tank-wave', d: wave(0)});
	const back = svg('path', {class: 'tank-wave back', d: wave(5)});
	const fluid = svg('g', {class: 'tank-fluid'}, back, surface);
	const scale = svg('g', {class: 'tank-scale'});
	const drops = svg('g', {class: 'tank-drops'});
	const inflow = svg('path', {class: 'tank-inflow', d: `M${(LEFT + RIGHT) / 2} 4 V${TOP + 8}`});
	const vessel = svg('path', {class: 'tank-vessel', d: outline()});
	const body = svg('g', {class: 'tank-body'},
		svg('g', {'clip-path': 'url(#tank-clip)'}, svg('path', {class: 'tank-inside', d: outline()}), fluid), inflow, vessel, scale);
	const root = svg('svg', {class: 'tank', viewBox: `0 0 ${WIDTH} ${HEIGHT}`, 'aria-hidden': 'true', focusable: 'false'},
		svg('defs', {}, svg('clipPath', {id: 'tank-clip'}, svg('path', {d: outline()}))), drops, body);
	let shown = -1;
	let marked = null;
	body.addEventListener('animationend', (e) => e.target === body && body.classList.remove('shake', 'shake-shadow'));

	return {
		node: root,
		// update takes the level now and whether the bucket refills at this moment.
		update(level, capacity, filling) {
			if (marked !== capacity) {
				marked = capacity;
				replace(scale, ...marks(capacity));
			}
			const part = capacity > 0 ? Math.min(Math.max(level / capacity, 0), 1) : 0;
			const y = BOTTOM - part * (BOTTOM - TOP);
			if (Math.abs(y - shown) > 0.15) {
				shown = y;
				fluid.setAttribute('transform', `translate(0 ${y.toFixed(1)})`);
			}
			root.classList.toggle('filling', filling);
			inflow.setAttribute('d', `M${(LEFT + RIGHT) / 2} 4 V${Math.max(y, TOP + 4).toFixed(1)}`);
		},
		// decided shows one decision: a drop that falls out, or a shake.
		decided(kind) {
			if (kind === 'elsewhere' || matchMedia('(prefers-reduced-motion: reduce)').matches) {
				return;
			}
			if (kind === 'allowed') {
				drip(drops);
				return;
			}
			body.classList.remove('shake', 'shake-shadow');
			void body.getBoundingClientRect(); // begins the animation again
			body.classList.add(kind === 'shadow' ? 'shake-shadow' : 'shake');
		},
	};
}

function drip(drops) {
	if (drops.childElementCount >= DROPS) {
		return;
	}
	const drop = svg('circle', {class: 'tank-drop', cx: (LEFT + RIGHT) / 2, cy: BOTTOM, r: 3});
	drop.addEventListener('animationend', () => drop.remove());
	drops.append(drop);
}

function outline() {
	const r = 12;
	return `M${LEFT} ${TOP} V${BOTTOM - r} Q${LEFT} ${BOTTOM} ${LEFT + r} ${BOTTOM} H${RIGHT - r} Q${RIGHT} ${BOTTOM} ${RIGHT} ${BOTTOM - r} V${TOP}`;
}

// wave is a surface at 0 and all that is below it, twice as wide as the vessel so that
// it can move.
function wave(shift) {
	const length = RIGHT - LEFT;
	let d = `M${LEFT - length} ${shift / 5}`;
	for (let i = 0; i < 4; i++) {
		d += ` q${length / 4} ${i % 2 ? 4 : -4} ${length / 2} 0`;
	}
	return `${d} V${HEIGHT + 40} H${LEFT - length} Z`;
}

function marks(capacity) {
	const nodes = [];
	for (const part of [0, 0.25, 0.5, 0.75, 1]) {
		const y = BOTTOM - part * (BOTTOM - TOP);
		const long = part % 0.5 === 0;
		nodes.push(svg('path', {d: `M${RIGHT + 4} ${y} h${long ? 7 : 4}`}));
		if (long) {
			nodes.push(svg('text', {x: RIGHT + 15, y: y + 3.5}, tokens(capacity * part)));
		}
	}
	return nodes;
}
