// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {test} from 'node:test';
import {exact, runOf} from '../assets/playground/run.js';
import {copyOf, inputOf, laneDefaults, mistakesOf, phaseDefaults, queryOf, readQuery, sameInput, stateOf} from '../assets/playground/state.js';
import {learn} from '../assets/shell/vocabulary.js';

// The Go test writes this file: the examples of the server, its bounds, and its results.
const {presets, bounds, played, algorithms} = JSON.parse(readFileSync(new URL('engine.json', import.meta.url)));
learn({algorithms});
const read = (query) => readQuery(new URLSearchParams(query), {presets, bounds});

const lane = 'lane=token_bucket,1/1s,capacity=5';
const phase = 'phase=steady,rate=1,seconds=3';

for (const query of [
	'lane=magic', 'lane=token_bucket,1/1s,x=1', 'phase=trace,z=%3C%3C', 'lane=%25', 'lane=' + 'x'.repeat(10240),
	'lane=constructor,1/1s&phase=toString', lane, phase, `${lane}&`.repeat(5) + phase,
	lane + `&${phase}`.repeat(7), `${lane}&${phase}&hand=NaN`, `${lane}&${phase}&hand=-1`,
]) {
	test(`an invalid link shows the first example: ${query.slice(0, 60)}`, async () => {
		const {state, preset, problem} = await read(query);
		assert.match(problem, /The link cannot be read/);
		assert.equal(preset.id, 'first-steps');
		assert.deepEqual(state, stateOf(presets[0].input));
	});
}

test('a link to an unknown example shows an error', async () => {
	const {preset, problem} = await read('preset=constructor');
	assert.match(problem, /an unknown example/);
	assert.equal(preset.id, 'first-steps');
});

test('the server checks links, except values that JSON cannot encode', async () => {
	for (const query of [
		'lane=token_bucket,1/1s,capacity=5&phase=steady,rate=1,seconds=10000000000',
		'lane=token_bucket,1/1s,capacity=5&phase=steady,rate=1000000000,seconds=5',
		`lane=token_bucket,1/1s,capacity=5,name=${'x'.repeat(10240)}&${phase}`,
		`lane=token_bucket,1/1s,capacity=5&${phase}&hand=1000`,
	]) {
		const {state, problem} = await read(query);
		assert.equal(problem, '');
		assert.deepEqual(mistakesOf(state), []);
	}
	const {state, problem} = await read('lane=token_bucket,NaN/1s,capacity=NaN&phase=steady,rate=1e9,seconds=-1');
	assert.equal(problem, '');
	assert.deepEqual(mistakesOf(state).map((m) => `${m.pointer}: ${m.detail}`), [
		'/lanes/0/tokens: this is not a number', '/lanes/0/capacity: this is not a number',
		'/traffic/phases/0/rate: this is not a number', '/traffic/phases/0/seconds: this is not a number',
	]);
});

test('the link of an example contains its ID and opens the example', async () => {
	for (const p of presets) {
		const state = stateOf(p.input);
		assert.equal(await queryOf(state, presets), `preset=${p.id}`);
		const back = await read(`preset=${p.id}`);
		assert.equal(back.preset.id, p.id);
		assert.ok(sameInput(back.state, state), p.id);
		assert.deepEqual(mistakesOf(state), [], p.id);
	}
});

test('a link contains all settings', async () => {
	for (const p of presets) {
		const state = copyOf(stateOf(p.input));
		state.lanes[0].name = 'a,b=c%2C/<img src=x>&\u202e 100%';
		state.lanes.at(-1).capacity = '20.5';
		state.phases[0] = phaseDefaults('poisson', {seconds: '3', rate: '60', seed: '7'});
		state.hand = ['0.5', '1'];
		state.retry = true;
		const query = await queryOf(state, presets);
		assert.match(query, /phase=poisson,rate=60,seed=7,seconds=3/);
		assert.match(query, /&hand=0.5,1&retry=1$/);
		const back = await read(query);
		assert.equal(back.problem, '', query);
		assert.deepEqual(inputOf(back.state), inputOf(state), p.id);
		assert.equal(await queryOf(back.state, presets), query);
	}
});

test('a link contains a pasted trace, or reports that it is too long', async () => {
	const state = {...stateOf(presets[0].input), phases: [{shape: 'trace', trace: '<script>alert(1)</script>\n\u202e{"at":1}\n'}]};
	const query = await queryOf(state, presets);
	assert.match(query, /phase=trace,z=[-_0-9A-Za-z]+$/);
	assert.deepEqual((await read(query)).state.phases, state.phases);
	let long = '';
	for (let i = 0; i < 4000; i++) long += `{"at":${i}.${String(i * 7919 % 1000003 % 1000000).padStart(6, '0')}}\n`;
	state.phases[0].trace = long;
	await assert.rejects(queryOf(state, presets), /too long for a link/);
});

test('a new algorithm keeps compatible settings', () => {
	assert.deepEqual(laneDefaults('leaky_bucket', {tokens: '3', per: '2s', capacity: '9', cost: '2'}), {algorithm: 'leaky_bucket', tokens: '3', per: '2s', cost: '2', queue: '10'});
	assert.deepEqual(laneDefaults('token_bucket', {tokens: '3', per: '2s', queue: '4'}), {algorithm: 'token_bucket', tokens: '3', per: '2s', capacity: '3'});
	assert.deepEqual(laneDefaults('sliding_log'), {algorithm: 'sliding_log', tokens: '10', per: '1s'});
});

test('the chart of an example shows the decisions of the server', () => {
	assert.equal(played.length, presets.length);
	for (const {id, seconds, lanes} of played) {
		for (const l of lanes) {
			const run = runOf(l, seconds);
			const end = run.until(seconds);
			assert.equal(end.n, run.decisions.length, id);
			assert.equal(end.allowed, l.totals.allowed, id);
			assert.equal(end.denied, l.totals.denied, id);
			assert.equal(run.until(-1).n, 0, id);
			for (const [i, d] of run.decisions.entries()) {
				const {n, list} = run.near(d.at, 1e-6);
				assert.ok(n <= i + 1 && n + list.length > i, `${id}: decision ${i} is not near its own instant`);
				if (run.decisions[i + 1]?.at !== d.at) assert.ok(Math.abs(run.levelAt(d.at) - d.level) < 1e-6, `${id}: at ${d.at} the level is ${run.levelAt(d.at)}, want ${d.level}`);
			}
		}
	}
});

test('exact keeps digits that dur rounds away', () => {
	for (const [seconds, want] of [[0, '0 s'], [0.0123456, '12.346 ms'], [19.95, '19.95 s'], [320, '5 min 20 s']]) assert.equal(exact(seconds), want);
});
