// SPDX-License-Identifier: Apache-2.0
//
// The player of virtual time: position and speed.
//
//   player({onMove(t, from, playing)}) → {node, at(), seek(t), stop(), length(seconds), actions (a place for buttons)}
//     onMove: time moved to t. If playing, it passed continuously since from; else it jumped.

import {h, svg} from '../ui/dom.js';
import {dur} from '../ui/format.js';

const wholeIn = 15; // seconds that a play takes, unless its real time is similar
const speeds = [['auto', 'Automatic speed'], ['0.1', '1/10 of real time'], ['0.25', '1/4 of real time'], ['1', 'Real time'], ['10', '10 times'], ['60', '60 times'], ['600', '600 times']];
const grain = 10000; // slider positions

export function player({onMove}) {
	let seconds = 1;
	let t = 0;
	let last = 0;
	let frame = 0;
	let speed = 'auto';
	const button = h('button', {type: 'button', class: 'btn btn-primary play-button', onclick: () => (frame ? stop() : start())});
	const slider = h('input', {class: 'slider', type: 'range', min: 0, max: grain, step: 1, 'aria-label': 'Virtual time', oninput: () => {
		stop();
		move(Number(slider.value) / grain * seconds, false);
	}});
	const clock = h('output', {class: 'play-clock'});
	const pace = h('select', {class: 'select play-pace', 'aria-label': 'Speed', onchange: () => {
		speed = pace.value;
	}}, speeds.map(([v, text]) => h('option', {value: v}, text)));
	const actions = h('div', {class: 'row'});
	const node = h('div', {class: 'play-bar', role: 'group', 'aria-label': 'Time'}, button, slider, clock, pace, actions);
	face();

	function face() {
		const d = frame ? 'M5 4h3.4v12H5zM11.6 4H15v12h-3.4z' : 'M6 3.8v12.4L16 10z';
		button.replaceChildren(svg('svg', {viewBox: '0 0 20 20', fill: 'currentColor', 'aria-hidden': 'true'}, svg('path', {d})), frame ? 'Pause' : 'Play');
	}

	function move(to, playing) {
		const from = t;
		t = Math.max(0, Math.min(seconds, to));
		slider.value = String(Math.round(t / seconds * grain));
		slider.style.setProperty('--part', `${100 * t / seconds}%`);
		slider.setAttribute('aria-valuetext', `${clockText(t)} of ${dur(seconds)}`);
		clock.textContent = clockText(t);
		onMove(t, from, playing);
	}

	function clockText(at) {
		return seconds < 100 ? `${at.toFixed(seconds < 1 ? 4 : seconds < 20 ? 2 : 1)} s` : dur(Math.round(at));
	}

	function pacing() {
		if (speed !== 'auto') return Number(speed);
		return seconds >= 5 && seconds <= 30 ? 1 : seconds / wholeIn;
	}

	function step(now) {
		frame = requestAnimationFrame(step);
		const passed = Math.min(100, now - last) / 1000;
		last = now;
		move(t + passed * pacing(), true);
		if (t >= seconds) stop();
	}

	function start() {
		if (t >= seconds * 0.9999) move(0, false);
		last = performance.now();
		frame = requestAnimationFrame(step);
		face();
	}

	function stop() {
		cancelAnimationFrame(frame);
		frame = 0;
		face();
	}

	return {
		node, actions, stop,
		at: () => t,
		seek(to) {
			if (frame) stop();
			move(to, false);
		},
		// length sets the total length. If time was at the end, it moves to the new end.
		length(next) {
			const ended = t >= seconds * 0.9999 || t === 0 && !frame;
			seconds = next;
			move(ended && !frame ? seconds : Math.min(t, seconds), false);
		},
		toggle: () => (frame ? stop() : start()),
	};
}
