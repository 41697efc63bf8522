// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {test} from 'node:test';
import {Level, limitOf, stillMissing} from '../assets/key/level.js';

const continuous = {refill: 'continuous', capacity: 5, rate: {tokens: 1, per: 1}};
const interval = {refill: 'interval', capacity: 10, rate: {tokens: 3, per: 10}};
const window = {refill: 'interval', capacity: 10, rate: {tokens: 10, per: 60}};
const sliding = {refill: 'sliding', capacity: 10, rate: {tokens: 10, per: 60}};
const ten = {...continuous, capacity: 10};

for (const {name, bucket, told, at, want} of [
	{name: 'refills all the time', bucket: continuous, at: [100, 101.5, 102.999, 103, 200], want: [2, 3.5, 4.999, 5, 5],
		told: (l, limit) => l.look({t: 100, level: 2, limit, fullAfter: 3})},
	{name: 'owes', bucket: {...continuous, rate: {tokens: 2, per: 1}}, at: [100, 101, 102, 110], want: [-4, -2, 0, 5],
		told: (l, limit) => l.look({t: 100, level: -4, limit, fullAfter: 4.5})},
	{name: 'refills by the interval', bucket: interval, at: [103.9, 104, 113.9, 114, 124, 134], want: [3, 6, 6, 9, 10, 10],
		told: (l, limit) => l.look({t: 100, level: 3, limit, fullAfter: 24})},
	{name: 'has windows', bucket: window, at: [109, 110, 119, 120], want: [7, 6, 6, 10],
		told: (l, limit) => {
			l.look({t: 100, level: 7, limit, fullAfter: 20});
			l.decide({t: 110, level: 6, limit, kind: 'allowed', cost: 1});
		}},
	{name: 'slides', bucket: sliding, at: [100, 130], want: [7, 7],
		told: (l, limit) => l.look({t: 100, level: 7, limit, fullAfter: 20})},
	{name: 'is told out of order', bucket: ten, at: [100, 100.5, 100.9, 101], want: [null, 7.5, 7.9, 8],
		told: (l, limit) => {
			l.look({t: 101, level: 8, limit});
			l.decide({t: 100.5, level: 7.5, limit, kind: 'allowed', cost: 1});
		}},
	{name: 'was not looked at', bucket: ten, at: [101, 105, 110, 111], want: [2, null, 3, 4],
		told: (l, limit) => {
			l.look({t: 100, level: 1, limit});
			l.lose(102);
			l.look({t: 110, level: 3, limit});
		}},
]) {
	test(`a level is drawn between two looks: of a bucket that ${name}`, () => {
		const level = new Level(60);
		told(level, limitOf(bucket));
		assert.deepEqual(at.map((t) => level.at(t)).map((v) => v === null ? v : Math.round(v * 1000) / 1000), want);
	});
}

// The Go test writes these files: takes of random costs at random instants, what the server
// sends of them, and what the engine holds between them.
const {buckets} = JSON.parse(readFileSync(new URL('engine.json', import.meta.url)));

for (const {name, limit, told, at, want} of buckets) {
	test(`the level between two events is the engine's: ${name}`, () => {
		const level = new Level(1e6);
		const bucket = limitOf(limit);
		const got = [];
		let next = 0;
		const drawUntil = (t) => {
			for (; next < at.length && at[next] <= t; next++) got.push(level.at(at[next]));
		};
		for (const event of told) {
			drawUntil(event.t);
			if (event.look) level.look({...event, limit: bucket});
			else level.decide({...event, limit: bucket, kind: 'allowed', cost: 1});
		}
		drawUntil(Infinity);
		assert.equal(got.length, want.length);
		assert.ok(got.length > 100, `only ${got.length} levels are compared`);
		got.forEach((drawn, i) => {
			assert.ok(Number.isFinite(drawn), `at ${at[i]} it draws ${drawn}`);
			if (limit.refill === 'sliding') { // it draws no more than what the engine holds
				assert.ok(drawn <= want[i] + 0.002, `at ${at[i]} it draws ${drawn}, and the engine holds ${want[i]}`);
			} else { // amounts are sent rounded down to a thousandth
				assert.ok(Math.abs(drawn - want[i]) <= 0.002, `at ${at[i]} it draws ${drawn}, and the engine holds ${want[i]}`);
			}
		});
	});
}

for (const {name, bucket, missing, want} of [
	{name: 'refills all the time', bucket: {refill: 'continuous', capacity: 20, rate: {tokens: 10, per: 1}, full_after: 2}, missing: 20, want: [20, 15, 0, 0]},
	{name: 'owes', bucket: {refill: 'continuous', capacity: 20, rate: {tokens: 10, per: 1}, full_after: 2.5}, missing: 25, want: [25, 20, 0, 0]},
	{name: 'refills by the interval', bucket: {refill: 'interval', capacity: 10, rate: {tokens: 3, per: 1}, full_after: 2.4}, missing: 7, want: [7, 4, 0, 0]},
	{name: 'slides', bucket: {refill: 'sliding', capacity: 10, rate: {tokens: 10, per: 60}, full_after: 1}, missing: 6, want: [6, 3, 0, 0]},
	{name: 'never refills', bucket: {refill: 'continuous', capacity: 10, rate: {tokens: 0, per: 1}, full_after: null}, missing: 6, want: [6, 6, 6, 6]},
]) {
	test(`undo takes back only what would still be missing: of a bucket that ${name}`, () => {
		assert.deepEqual([0, 0.5, 2.5, 100].map((s) => stillMissing(bucket, missing, s)), want);
	});
}
