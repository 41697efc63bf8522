// SPDX-License-Identifier: Apache-2.0
//
// The state of the page and its form in links. Numbers stay text as typed, because the server reads them exactly.
//
//   stateOf(input)            converts an input of the server to a state
//   inputOf(state)            converts back
//   queryOf(state, presets)   the query of a link; throws an Error if it is too long
//   readQuery(params, {presets, bounds}) → {state, preset, problem}
//   mistakesOf(state)         invalid numbers, in the form of the errors of the server
//   sameInput(a, b), copyOf(state), laneDefaults(algorithm, lane), phaseDefaults(shape, phase)

import {algorithmOf, algorithms} from '../shell/vocabulary.js';

const longestLink = 6000; // characters; some programs cut longer links

// algorithmNames are the algorithms of the playground with their labels. A budget is a fixed window with another name.
export function algorithmNames() {
	return Object.fromEntries(algorithms().filter((a) => a.shape !== 'budget' && a.shape !== 'tokens').map((a) => [a.name, a.label]));
}

export const shapeNames = {steady: 'Steady', burst: 'Bursts', poisson: 'Random (Poisson)', pause: 'Pause', trace: 'Pasted trace'};

const laneFields = ['name', 'algorithm', 'tokens', 'per', 'capacity', 'refill', 'anchor', 'queue', 'cost', 'jitter'];
const phaseFields = ['shape', 'rate', 'count', 'every', 'seed', 'seconds', 'trace'];
const aNumber = /^\d{1,20}(\.\d{1,20})?$/;
const fieldsOfShape = {steady: ['rate', 'seconds'], burst: ['count', 'every', 'seconds'], poisson: ['rate', 'seed', 'seconds'], pause: ['seconds'], trace: ['trace']};

export function stateOf(input) {
	const pick = (from, names) => Object.fromEntries(names.filter((n) => from[n] !== undefined && from[n] !== '').map((n) => [n, String(from[n])]));
	return {
		lanes: (input.lanes ?? []).map((l) => pick(l, laneFields)),
		phases: (input.traffic?.phases ?? []).map((p) => pick(p, phaseFields)),
		hand: (input.traffic?.hand ?? []).map(String),
		retry: Boolean(input.traffic?.retry),
	};
}

export function inputOf(state) {
	const phases = state.phases.map((p) => {
		const phase = {...p};
		for (const name of ['count', 'seed']) if (name in phase) phase[name] = Number(phase[name]);
		return phase;
	});
	return {lanes: state.lanes, traffic: {phases, hand: state.hand, retry: state.retry}};
}

// mistakesOf finds values that JSON cannot encode. The server checks everything else.
export function mistakesOf(state) {
	const mistakes = [];
	const check = (from, at, names, form, hint) => {
		for (const name of names) {
			if (name in from && !form.test(from[name])) mistakes.push({pointer: `${at}/${name}`, detail: from[name] === '' ? 'a number is missing' : 'this is not a number', hint});
		}
	};
	state.lanes.forEach((l, i) => check(l, `/lanes/${i}`, ['tokens', 'capacity', 'queue', 'cost'], aNumber, 'write it like 10 or 0.5'));
	state.phases.forEach((p, i) => {
		check(p, `/traffic/phases/${i}`, ['rate', 'seconds'], aNumber, 'write it like 10 or 0.5');
		check(p, `/traffic/phases/${i}`, ['count', 'seed'], /^\d{1,15}$/, 'write a whole number');
	});
	return mistakes;
}

export function copyOf(state) {
	return structuredClone(state);
}

export function sameInput(a, b) {
	return JSON.stringify(inputOf(ordered(a))) === JSON.stringify(inputOf(ordered(b)));
}

function ordered(state) {
	const sorted = (o, names) => Object.fromEntries(names.filter((n) => n in o).map((n) => [n, o[n]]));
	return {...state, lanes: state.lanes.map((l) => sorted(l, laneFields)), phases: state.phases.map((p) => sorted(p, phaseFields))};
}

// laneDefaults is a lane of the algorithm that keeps as many settings of lane as possible.
export function laneDefaults(algorithm, lane = {}) {
	const {tokens = '10', per = '1s', cost, jitter} = lane;
	const next = {algorithm, tokens, per};
	if (cost !== undefined && algorithmOf(algorithm).shape !== 'slots') next.cost = cost;
	if (jitter !== undefined) next.jitter = jitter;
	if (algorithmOf(algorithm).shape === 'rate') next.capacity = lane.capacity ?? tokens;
	if (algorithmOf(algorithm).shape === 'queue') next.queue = lane.queue ?? '10';
	return next;
}

export function phaseDefaults(shape, phase = {}) {
	const values = {rate: '5', seconds: '10', count: '10', every: '2s', seed: '1', trace: '', ...phase};
	return Object.fromEntries([['shape', shape], ...fieldsOfShape[shape].map((n) => [n, values[n]])]);
}

// Links: lane=token_bucket,10/1s,capacity=50&phase=steady,rate=60,seconds=3&hand=0.5,1&retry=1, or preset=NAME.

export async function queryOf(state, presets) {
	const preset = presets.find((p) => sameInput(stateOf(p.input), state));
	if (preset) return `preset=${encodeURIComponent(preset.id)}`;
	const parts = state.lanes.map((l) => `lane=${joinFields([l.algorithm, `${l.tokens}/${l.per}`], l, laneFields.filter((n) => !['algorithm', 'tokens', 'per'].includes(n)))}`);
	for (const p of state.phases) {
		const packed = 'trace' in p ? {...p, z: await packedText(p.trace)} : p;
		parts.push(`phase=${joinFields([p.shape], packed, [...phaseFields.filter((n) => n !== 'shape' && n !== 'trace'), 'z'])}`);
	}
	if (state.hand.length > 0) parts.push(`hand=${state.hand.join(',')}`);
	if (state.retry) parts.push('retry=1');
	const query = parts.join('&');
	if (query.length > longestLink) throw new Error('The pasted trace is too long for a link. Download the trace and share the file.');
	return query;
}

// Commas and percent signs in a value are escaped once more, because commas separate values.
function joinFields(first, from, names) {
	const inner = (text) => String(text).replace(/[%,]/g, encodeURIComponent);
	const text = [...first.map(inner), ...names.filter((n) => from[n] !== undefined).map((n) => `${n}=${inner(from[n])}`)].join(',');
	return encodeURIComponent(text).replaceAll('%2C', ',').replaceAll('%2F', '/').replaceAll('%3D', '=').replaceAll('%20', '+');
}

export async function readQuery(params, {presets, bounds}) {
	const named = params.get('preset');
	const preset = presets.find((p) => p.id === named) ?? presets[0];
	if (!params.has('lane') && !params.has('phase')) {
		const problem = named && preset.id !== named ? 'The link names an unknown example.' : '';
		return {state: stateOf(preset.input), preset, problem};
	}
	try {
		const state = {
			lanes: params.getAll('lane').map(readLane), phases: await Promise.all(params.getAll('phase').map(readPhase)),
			hand: (params.get('hand') ?? '').split(',').filter(Boolean), retry: params.get('retry') === '1',
		};
		if (!drawable(state, bounds)) throw new Error('more lanes or phases than the page shows');
		return {state, preset: presets.find((p) => sameInput(stateOf(p.input), state)) ?? null, problem: ''};
	} catch {
		return {state: stateOf(presets[0].input), preset: presets[0], problem: 'The link cannot be read. It may be cut off.'};
	}
}

// drawable reports whether the page has fields and cards for a state. The server decides whether it can be played.
function drawable({lanes, phases, hand}, bounds) {
	const some = (list, most) => list.length > 0 && list.length <= most;
	return some(lanes, bounds.lanes) && some(phases, bounds.phases) && hand.every((at) => aNumber.test(at));
}

function readFields(parts, known) {
	const fields = {};
	for (const part of parts) {
		const at = part.indexOf('=');
		const name = part.slice(0, at);
		if (!known.includes(name)) throw new Error(name);
		fields[name] = decodeURIComponent(part.slice(at + 1));
	}
	return fields;
}

function readLane(text) {
	const [algorithm, rate, ...rest] = text.split(',');
	const [tokens, per] = rate.split('/');
	if (!Object.hasOwn(algorithmNames(), algorithm)) throw new Error(algorithm);
	return {...readFields(rest, laneFields), algorithm, tokens, per: decodeURIComponent(per)};
}

async function readPhase(text) {
	const [shape, ...rest] = text.split(',');
	if (!Object.hasOwn(shapeNames, shape)) throw new Error(shape);
	const {z, ...fields} = readFields(rest, [...phaseFields, 'z']);
	if (z !== undefined) fields.trace = await unpackedText(z);
	return {shape, ...fields};
}

// packedText encodes a text as base64url of raw DEFLATE.

async function packedText(text) {
	const bytes = await bytesOf(new Blob([text]).stream().pipeThrough(new CompressionStream('deflate-raw')));
	let binary = '';
	for (const b of bytes) binary += String.fromCharCode(b);
	return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

const longestUnpacked = 1 << 20;

async function unpackedText(packed) {
	const binary = atob(packed.replaceAll('-', '+').replaceAll('_', '/'));
	const stream = new Blob([Uint8Array.from(binary, (c) => c.charCodeAt(0))]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
	return new TextDecoder('utf-8', {fatal: true}).decode(await bytesOf(stream));
}

async function bytesOf(stream) {
	const parts = [];
	let length = 0;
	for (const reader = stream.getReader(); ;) {
		const {done, value} = await reader.read();
		if (done) break;
		length += value.length;
		if (length > longestUnpacked) throw new Error('too long');
		parts.push(value);
	}
	return new Uint8Array(await new Blob(parts).arrayBuffer());
}
