// SPDX-License-Identifier: Apache-2.0
//
// The form fields of a limit and of traffic. A change updates the state.
//
//   laneForm(state, i, done)        done(rebuild): a value changed; rebuild if the fields change
//   trafficForm(state, bounds, changed)  changed is like done
//   trafficWords(state)             the traffic in a sentence

import {h} from '../ui/dom.js';
import {choiceField, numberField, partsField, textField} from './controls.js';
import {algorithmOf} from '../shell/vocabulary.js';
import {algorithmNames, laneDefaults, phaseDefaults, shapeNames} from './state.js';

const durations = [['1s', 'second'], ['2s', '2 seconds'], ['5s', '5 seconds'], ['10s', '10 seconds'], ['30s', '30 seconds'], ['1m', 'minute'], ['5m', '5 minutes'],
	['1h', 'hour'], ['1d', 'day']];
const lengths = durations.map(([value, text]) => [value, /^\d/.test(text) ? text : `1 ${text}`]);
const everies = [['', 'once'], ['100ms', 'every 100 ms'], ['500ms', 'every 500 ms'], ['1s', 'every second'], ['2s', 'every 2 s'], ['3s', 'every 3 s'], ['4s', 'every 4 s'],
	['5s', 'every 5 s'], ['10s', 'every 10 s'], ['30s', 'every 30 s'], ['1m', 'every minute'], ['5m', 'every 5 minutes']];

export function laneForm(state, i, done) {
	const lane = state.lanes[i];
	const changed = (rebuild) => {
		delete state.lanes[i].name; // the name described the old limit
		done(rebuild);
	};
	const at = `/lanes/${i}`;
	const set = (name, rebuild = false) => (value) => {
		if (value === '') delete lane[name];
		else lane[name] = value;
		changed(rebuild);
	};
	const keep = (name) => (value) => {
		lane[name] = value; // also an empty value, so that the server reports a missing field
		changed(false);
	};
	const number = (name, label, more = {}) => numberField({label, value: lane[name], place: `${at}/${name}`, onInput: keep(name), to: 5000, ...more});
	const {shape} = algorithmOf(lane.algorithm);
	const window = shape === 'window' || shape === 'sliding';
	const slots = shape === 'slots';
	const list = [
		choiceField({label: 'Algorithm', value: lane.algorithm, options: Object.entries(algorithmNames()), place: `${at}/algorithm`, onInput: (v) => {
			state.lanes[i] = laneDefaults(v, lane);
			changed(true);
		}}),
		number('tokens', slots ? 'Requests at the same time' : window ? 'Tokens per window' : 'Refill (tokens)', {decimals: !window && !slots}),
		choiceField({label: slots ? 'Each request lasts' : window ? 'Window' : 'per', value: lane.per, options: slots ? lengths : durations, place: `${at}/per`, onInput: set('per')}),
	];
	if (shape === 'rate') {
		list.push(number('capacity', 'Capacity', {to: 10000}));
		list.push(partsField({label: 'Refill', value: lane.refill ?? 'continuous', options: [['continuous', 'continuous'], ['interval', 'at intervals']],
			place: `${at}/refill`, onInput: (v) => {
				if (v === 'continuous') {
					delete lane.refill;
					delete lane.anchor;
				} else lane.refill = v;
				changed(true);
			}}));
	}
	if (shape === 'queue') {
		list.push(number('queue', 'Queue (tokens)', {zero: true}));
		list.push(number('capacity', 'Burst (capacity)', {value: lane.capacity ?? '1', onInput: (v) => (v === '1' ? set : keep)('capacity')(v === '1' ? '' : v)}));
	}
	if (shape === 'window') list.push(number('capacity', 'Capacity, if unused tokens roll over', {value: lane.capacity ?? '', onInput: set('capacity')}));
	if (shape === 'window' || lane.refill === 'interval') {
		list.push(choiceField({label: window ? 'Windows start' : 'Intervals start', value: lane.anchor ?? '', place: `${at}/anchor`, onInput: set('anchor'),
			options: [['', 'by the clock'], ['key', 'per key'], ['first', 'at the first request']]}));
	}
	if (!slots) list.push(numberField({label: 'Cost per request', value: lane.cost ?? '1', decimals: true, to: 100, place: `${at}/cost`, onInput: (v) => set('cost')(v === '1' ? '' : v)}));
	if (state.retry) {
		list.push(choiceField({label: 'Retry-After jitter', value: lane.jitter ?? '', place: `${at}/jitter`, onInput: set('jitter'),
			options: [['', '50%, the default'], ['0', 'none'], ['25%', '25%'], ['50%', '50%'], ['100%', '100%']]}));
	}
	return h('div', {class: 'play-fields'}, list);
}

export function trafficForm(state, bounds, changed) {
	const add = h('button', {type: 'button', class: 'btn btn-small', disabled: state.phases.length >= bounds.phases, dataset: {key: 'add-phase'}, onclick: () => {
		state.phases.push(phaseDefaults('steady'));
		changed(true);
	}}, 'Add a phase');
	const retry = h('input', {type: 'checkbox', checked: state.retry, dataset: {key: 'retry'}, onchange: () => {
		state.retry = retry.checked;
		changed(true);
	}});
	const hand = state.hand.length > 0 && h('span', {class: 'row'}, h('span', {class: 'muted'}, `${state.hand.length} sent by hand`),
		h('button', {type: 'button', class: 'btn btn-small', dataset: {key: 'no-hand'}, onclick: () => {
			state.hand = [];
			changed(true);
		}}, 'Remove them'));
	return h('div', {class: 'stack-small'}, h('ol', {class: 'plain play-phases', 'aria-label': 'Traffic phases'}, state.phases.map((_, i) => phaseForm(state, i, changed))),
		h('div', {class: 'row', dataset: {place: '/traffic'}}, add, h('label', {class: 'check'}, retry, 'Denied clients retry'), hand, h('p', {class: 'mistake', hidden: true})));
}

function phaseForm(state, i, changed) {
	const phase = state.phases[i];
	const at = `/traffic/phases/${i}`;
	const set = (name) => (value) => {
		phase[name] = value;
		changed(false);
	};
	const number = (name, label, more) => numberField({label, value: phase[name], place: `${at}/${name}`, onInput: set(name), ...more});
	const form = {
		steady: () => [number('rate', 'Requests per second', {decimals: true, to: 5000})],
		poisson: () => [number('rate', 'Requests per second, on average', {decimals: true, to: 5000}), number('seed', 'Seed', {to: 100, zero: true})],
		burst: () => [number('count', 'Requests at once', {to: 5000}), choiceField({label: 'Repeat', value: phase.every ?? '', options: everies, place: `${at}/every`, onInput: (v) => {
			if (v === '') delete phase.every;
			else phase.every = v;
			changed(false);
		}})],
		pause: () => [],
		trace: () => [textField({label: 'Lines of an access log, or JSON lines', value: phase.trace, rows: 5, place: `${at}/trace`, onInput: set('trace'),
			hint: 'Only the times and costs count: {"at": 0.5, "cost": 2}. The text is sent to this server and is not stored.'})],
	}[phase.shape]?.() ?? [];
	if (phase.shape !== 'trace') form.push(number('seconds', phase.shape === 'pause' ? 'Seconds without requests' : 'Duration in seconds', {decimals: true, to: 3600}));
	return h('li', {class: 'play-phase'},
		choiceField({label: `Phase ${i + 1}`, value: phase.shape, options: Object.entries(shapeNames), place: `${at}/shape`, onInput: (v) => {
			state.phases[i] = phaseDefaults(v, phase);
			changed(true);
		}}), form,
		state.phases.length > 1 && h('button', {type: 'button', class: 'btn btn-ghost btn-small play-remove', 'aria-label': `Remove phase ${i + 1}`, dataset: {key: `remove-phase-${i}`},
			onclick: () => {
				state.phases.splice(i, 1);
				changed(true);
			}}, 'Remove'));
}

export function trafficWords(state) {
	const words = state.phases.map((p) => ({
		steady: () => `${p.rate} per second for ${p.seconds} s`,
		poisson: () => `random, ${p.rate} per second on average, for ${p.seconds} s`,
		burst: () => `${p.count} at once${p.every ? `, every ${p.every} for ${p.seconds} s` : ''}`,
		pause: () => `no requests for ${p.seconds} s`,
		trace: () => 'a pasted trace',
	}[p.shape]?.() ?? ''));
	const more = [state.hand.length > 0 && `${state.hand.length} by hand`, state.retry && 'denied clients retry'].filter(Boolean);
	return [words.join(', then '), ...more].join('; ');
}
