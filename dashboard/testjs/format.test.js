// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import {test} from 'node:test';
import {ago, dur, num, pct, rate, tokens} from '../assets/ui/format.js';

test('numbers and times are formatted for people', () => {
	for (const [got, want] of [
		[num(0), '0'], [num(1234), '1,234'], [num(12345), '12.3k'], [num(9999.6), '10,000'], [num(999950), '1M'],
		[num(4.5678e9), '4.57G'], [num(0.25), '0.25'], [num(null), '–'], [num(NaN), '–'], [num(-12345), '-12.3k'],
		[rate(12.44), '12.4/s'], [rate(1240), '1,240/s'], [rate(undefined), '–'],
		[dur(0), '0 s'], [dur(0.0012), '1.2 ms'], [dur(2.5e-7), '250 ns'], [dur(3.42), '3.4 s'], [dur(59.97), '1 min'],
		[dur(320), '5 min 20 s'], [dur(7200), '2 h'], [dur(90000), '1 d 1 h'], [dur(null), '–'],
		[pct(31, 1000), '3.1%'], [pct(0, 0), '0%'], [pct(1, 1e6), '<0.1%'], [pct(999999, 1e6), '>99.9%'],
		[tokens(41.5), '41.5'], [tokens(1e7), '10M'], [tokens(12345.678), '12,345.678'],
		[ago(1000, 1012e3), '12 s ago'], [ago(1000, 880e3), 'in 2 min'], [ago(null), '–'], [ago('never'), '–'],
	]) assert.equal(got, want);
});
