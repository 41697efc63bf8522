// SPDX-License-Identifier: Apache-2.0

import {h} from '../ui/dom.js';
import {dur, tokens} from '../ui/format.js';
import {backAt, drawLevel} from './draw.js';
import {onTheme} from '../ui/palette.js';

const HEIGHT = 300; // px, unless the style sheet sets a height

// levelChart draws a bucket's level over time and its decisions. The x axis is the time before
// now; it stays in place while the curve moves. The caller calls draw for each frame.
export function levelChart(level, {span}) {
	const canvas = h('canvas', {'aria-hidden': 'true'});
	const reading = h('p', {class: 'level-reading', 'aria-live': 'off'});
	const spoken = h('p', {class: 'visually-hidden', role: 'status'});
	const figure = h('figure', {class: 'level-chart', tabindex: '0', role: 'img', 'aria-label': 'The level of the bucket over time'}, canvas, reading);
	const node = h('div', {class: 'level-frame'}, figure, spoken);
	const state = {span, width: 0, height: HEIGHT, cursor: null, now: 0};
	const context = canvas.getContext('2d');

	const resize = () => {
		const width = figure.clientWidth;
		const ratio = window.devicePixelRatio || 1;
		state.width = width;
		state.height = figure.clientHeight || HEIGHT;
		canvas.width = Math.round(width * ratio);
		canvas.height = Math.round(state.height * ratio);
		context.setTransform(ratio, 0, 0, ratio, 0, 0);
		redraw();
	};
	const redraw = () => state.width > 0 && drawLevel(context, level, state);
	const sizes = new ResizeObserver(resize);
	sizes.observe(figure);
	const unfollow = onTheme(redraw);
	const point = (back) => {
		state.cursor = back === null ? null : Math.min(Math.max(back, 0), state.span);
		reading.textContent = state.cursor === null ? '' : readingText(level, state.now - state.cursor, state.cursor);
		redraw();
	};
	figure.addEventListener('pointermove', (e) => point(backAt(state, e.clientX - figure.getBoundingClientRect().left)));
	figure.addEventListener('pointerleave', () => point(null));
	figure.addEventListener('blur', () => point(null));
	figure.addEventListener('keydown', (e) => {
		const step = {ArrowLeft: 1, ArrowRight: -1, PageUp: 10, PageDown: -10}[e.key];
		if (e.key === 'Escape') {
			point(null);
		} else if (step) {
			e.preventDefault();
			point((state.cursor ?? (step > 0 ? -step : 0)) + step);
			spoken.textContent = reading.textContent;
		}
	});

	return {
		node,
		// draw takes the current time in seconds.
		draw(now) {
			state.now = now;
			if (state.cursor !== null) {
				reading.textContent = readingText(level, now - state.cursor, state.cursor);
			}
			redraw();
		},
		span(seconds) {
			state.span = seconds;
			redraw();
		},
		// summary sets the description for screen readers.
		summary(text) {
			figure.setAttribute('aria-label', text);
		},
		destroy() {
			sizes.disconnect();
			unfollow();
		},
	};
}

function readingText(level, t, back) {
	const held = level.at(t);
	const near = level.marks(t - 0.5).find((m) => m.t < t + 0.5);
	const when = back < 0.05 ? 'now' : `${back.toFixed(back < 10 ? 1 : 0)} s ago`;
	const what = held === null ? 'no data' : `${tokens(held)} tokens`;
	return `${when}: ${what}${near ? `, ${markWords(near)}` : ''}`;
}

// markWords describes a decision.
function markWords(mark) {
	const cost = `cost ${tokens(mark.cost)}`;
	switch (mark.kind) {
		case 'allowed':
			return `${cost} allowed`;
		case 'shadow':
			return `${cost} would be denied`;
		case 'elsewhere':
			return `${cost} denied by another limit`;
		default:
			return `${cost} denied${mark.wait > 0 ? `, retry after ${dur(mark.wait)}` : ''}`;
	}
}
