// SPDX-License-Identifier: Apache-2.0
//
// The picture of a bucket. It is decoration: the numbers next to it show the same information.
//
//   bucketPicture() → {node, update(level, capacity), decided(kind)}
//
// A small bucket shows every token, and the next token grows. A large bucket shows its level. Rings below a bucket are
// the tokens that wait in its queue.

import {replace, svg} from '../ui/dom.js';

const wide = 104;
const high = 132;
const inside = {x: 12, y: 18, w: 80, h: 100};
const mostCoins = 60;
const mostFlying = 6;
const largestCoin = 36;

export function bucketPicture() {
	const content = svg('g');
	const flying = svg('g');
	const vessel = svg('path', {class: 'bucket-vessel', d: `M${inside.x - 5} ${inside.y - 6}V${inside.y + inside.h - 6}q0 10 10 10H${inside.x + inside.w - 5}q10 0 10 -10V${inside.y - 6}`});
	const drip = svg('path', {class: 'bucket-drip', d: `M${wide / 2} 0V${inside.y - 4}`});
	const body = svg('g', {class: 'bucket-body'}, content, vessel);
	const waiting = svg('g');
	const node = svg('svg', {class: 'bucket', viewBox: `0 0 ${wide} ${high}`, 'aria-hidden': 'true', focusable: 'false'}, drip, body, waiting, flying);
	let queued = -1;
	let layout = null;
	let shown = null;
	return {
		node,
		update(level, capacity) {
			const owed = Math.ceil(Math.max(0, -level) - 0.0005);
			if (owed !== queued) {
				queued = owed;
				replace(waiting, queueOf(owed));
			}
			if (layout?.capacity !== capacity) {
				layout = coinsFor(capacity);
				shown = null;
				replace(content, layout.nodes);
			}
			const held = Math.max(0, Math.min(capacity, level));
			if (shown !== null && Math.abs(held - shown) < 0.004) return;
			shown = held;
			layout.show(held);
			node.classList.toggle('bucket-filling', level < capacity);
			node.classList.toggle('bucket-owing', level < -0.0005);
		},
		decided(kind) {
			if (matchMedia('(prefers-reduced-motion: reduce)').matches) return;
			if (kind === 'denied') {
				body.classList.remove('bucket-shake');
				void body.getBoundingClientRect(); // restarts the animation
				body.classList.add('bucket-shake');
			}
			if (flying.childElementCount >= mostFlying) return;
			const coin = kind === 'denied' ? svg('path', {class: 'bucket-refused', d: `M${wide / 2 - 6} 4l12 12m0 -12l-12 12`})
				: svg('circle', {class: `bucket-out bucket-out-${kind}`, cx: wide / 2, cy: inside.y + inside.h - 8, r: 5});
			coin.addEventListener('animationend', () => coin.remove());
			flying.append(coin);
		},
	};
}

// coinsFor lays out a bucket as coins, or as a fluid if the coins would be too small.
function coinsFor(capacity) {
	const n = Math.ceil(capacity - 1e-9);
	if (n > mostCoins || n < 1) return fluid(capacity);
	let columns = 1;
	const sizeWith = (c) => Math.min(inside.w / c, inside.h / Math.ceil(n / c), largestCoin);
	for (let c = 2; c <= n; c++) if (sizeWith(c) > sizeWith(columns)) columns = c;
	const size = sizeWith(columns);
	const from = inside.x + (inside.w - columns * size) / 2;
	const coins = [];
	for (let i = 0; i < n; i++) {
		const cx = from + size * (i % columns + 0.5);
		const cy = inside.y + inside.h - size * (Math.floor(i / columns) + 0.5);
		coins.push({slot: svg('circle', {class: 'bucket-slot', cx, cy, r: size * 0.42}), coin: svg('circle', {class: 'bucket-coin', cx, cy, r: 0}), r: size * 0.42});
	}
	return {
		capacity, nodes: coins.flatMap((c) => [c.slot, c.coin]),
		show(level) {
			coins.forEach((c, i) => {
				const part = Math.max(0, Math.min(1, level - i));
				c.coin.setAttribute('r', (c.r * (part >= 0.9995 ? 1 : 0.9 * Math.sqrt(part))).toFixed(2));
				c.coin.classList.toggle('bucket-part', part < 0.9995);
			});
		},
	};
}

function fluid(capacity) {
	const rect = svg('rect', {class: 'bucket-fluid', x: inside.x - 5, width: inside.w + 10, rx: 3});
	const surface = svg('path', {class: 'bucket-surface'});
	return {
		capacity, nodes: [rect, surface],
		show(level) {
			const part = capacity > 0 ? level / capacity : 0;
			const y = inside.y + inside.h + 4 - part * (inside.h + 4);
			rect.setAttribute('y', y.toFixed(2));
			rect.setAttribute('height', Math.max(0, inside.y + inside.h + 3 - y).toFixed(2));
			surface.setAttribute('d', `M${inside.x - 5} ${y.toFixed(2)}h${inside.w + 10}`);
		},
	};
}

const queueColumns = 10;
const mostQueued = 2 * queueColumns;

// queueOf draws a ring for each waiting token, up to a limit.
function queueOf(owed) {
	const shown = Math.min(owed, mostQueued);
	const rings = Array.from({length: shown}, (_, i) => svg('circle', {class: 'bucket-queued', r: 3,
		cx: inside.x + 4 + (i % queueColumns) * 8, cy: high + 2 + Math.floor(i / queueColumns) * 9}));
	return owed > shown ? [...rings, svg('text', {class: 'play-tick', x: wide / 2, y: high + 26, 'text-anchor': 'middle'}, `and ${owed - shown} more wait`)] : rings;
}
