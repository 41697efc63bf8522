// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {test} from 'node:test';
import {Level, pointAt} from '../assets/key/level.js';

const rounded = (v) => v === null || !Number.isFinite(v) ? v : Math.round(v * 1000) / 1000;
const event = (t, levels, retry = 0, full = 0) => ({t, levels, retry, full});

for (const {name, events, at, want} of [
	{name: 'refills all the time', events: [event(100, [[0, 2], [3, 5], [30, 5]])], at: [99, 100, 101.5, 102.999, 103, 200], want: [null, 2, 3.5, 4.999, 5, 5]},
	{name: 'owes', events: [event(100, [[0, -4], [4.5, 5]])], at: [100, 101, 102, 110], want: [-4, -2, 0, 5]},
	{name: 'refills by the interval', events: [event(100, [[0, 3], [3.999999, 3], [4, 6], [13.999999, 6], [14, 9]])],
		at: [103.9, 104, 113.9, 114, 124], want: [3, 6, 6, 9, 9]},
	{name: 'is told of what was before', events: [event(100, [[0, 7], [30, 7]]), event(110.5, [[-10.5, 7], [-0.5, 7], [-0.5, 6], [0, 6.5], [3.5, 10]])],
		at: [109, 110, 110.25, 111, 114], want: [7, 6, 6.25, 7, 10]},
	{name: 'was not looked at', events: [event(100, [[0, 1], [9, 10]]), {lose: 102}, event(110, [[0, 3], [7, 10]])], at: [101, 102, 105, 110, 111], want: [2, 3, null, 3, 4]},
	{name: 'is unknown in between', events: [event(100, [[0, 1], [9, 10]]), event(100.2, [])], at: [101], want: [2]},
]) {
	test(`a level is drawn along the server's points: of a bucket that ${name}`, () => {
		const level = new Level(60);
		events.forEach((e) => (e.lose ? level.lose(e.lose) : level.tell(e)));
		assert.deepEqual(at.map((t) => rounded(level.at(t))), want);
	});
}

test('what is drawn, comes and was lost', () => {
	const level = new Level(60);
	assert.equal(level.last, null);
	assert.deepEqual([level.ahead(0, 9), level.curve(0), level.gaps], [[], [], []]);
	level.tell(event(100, [[0, 1], [9, 10], [30, 10]], 4, 9));
	assert.deepEqual(level.curve(103), [[[100, 1], [103, 4]]]);
	assert.deepEqual(level.ahead(103, 120), [[103, 4], [109, 10], [120, 10]]);
	assert.deepEqual([level.rising(103), level.rising(110)], [1, 0]);
	assert.deepEqual(level.waits(103), {retry: 1, full: 6});
	assert.deepEqual(level.waits(120), {retry: 0, full: 0});
	level.lose(104);
	assert.deepEqual([level.lost, level.gaps, level.ahead(105, 120)], [104, [[104, null]], []]);
	assert.deepEqual(level.waits(105), {retry: null, full: null});
	level.tell(event(103, [[0, 9]])); // older than the gap
	assert.equal(level.lost, 104);
	level.tell(event(106, [[0, 2], [30, 2]], null, null));
	assert.deepEqual([level.lost, level.gaps], [null, [[104, 106]]]);
	assert.deepEqual(level.curve(107), [[[100, 1], [104, 5]], [[106, 2], [107, 2]]]);
	assert.deepEqual(level.waits(107), {retry: Infinity, full: Infinity});
	level.tell(event(200, [[-94, 2], [0, 2]]));
	assert.deepEqual([level.gaps, level.first], [[], [106, 2]]);
});

// The Go test writes this file: takes of random costs at random instants, the server's events, and the
// engine's levels between them.
const {buckets} = JSON.parse(readFileSync(new URL('engine.json', import.meta.url)));

for (const {name, told, at, want, full} of buckets) {
	test(`the level between two events is the engine's: ${name}`, () => {
		const level = new Level(1e6);
		let next = 0;
		const drawUntil = (t) => {
			for (; next < at.length && at[next] < t; next++) {
				const drawn = level.at(at[next]);
				if (name === 'sliding log') { // the chart may draw less than the engine's level
					assert.ok(drawn <= want[next] + 0.002, `at ${at[next]} it draws ${drawn}, and the engine holds ${want[next]}`);
				} else { // amounts are rounded down to thousandths, and windows count in 4096ths
					assert.ok(Math.abs(drawn - want[next]) <= 0.006, `at ${at[next]} it draws ${drawn}, and the engine holds ${want[next]}`);
				}
				assert.ok(Math.abs(level.waits(at[next]).full - full[next]) < 0.001, `at ${at[next]} it is full in ${level.waits(at[next]).full} s, and the engine says ${full[next]}`);
			}
		};
		for (const e of told) {
			drawUntil(e.t);
			level.tell(e);
		}
		drawUntil(Infinity);
		assert.ok(at.length > 80, `only ${at.length} levels are compared`);
		const [drawn] = level.curve(at.at(-1));
		assert.ok(drawn.every(([t], i) => i === 0 || t >= drawn[i - 1][0]), 'the points are in order');
	});
}

test('undo takes back only what would still be missing', () => {
	assert.deepEqual([0, 0.5, 2.5, 100].map((s) => pointAt([[0, 20], [2, 0], [30, 0]], s)), [20, 15, 0, 0]);
	assert.deepEqual([0, 0.5, 2.5, 100].map((s) => pointAt([[0, 6], [30, 6]], s)), [6, 6, 6, 6]);
});
