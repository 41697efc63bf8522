// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import {test} from 'node:test';
import {queryOf, rangeOf} from '../assets/violations/query.js';

const now = Date.parse('2026-11-20T12:00:00Z');

test('the range of a filter is a named time, or from and to', () => {
	const at = (hour) => Date.parse(`2026-11-20T${hour}:00:00Z`);
	assert.deepEqual(rangeOf({range: '1h'}, now), {name: '1h', from: at('11'), to: now});
	assert.deepEqual(rangeOf({}, now), {name: '24h', from: now - 86400e3, to: now});
	assert.deepEqual(rangeOf({range: 'constructor'}, now), {name: '24h', from: now - 86400e3, to: now});
	assert.deepEqual(rangeOf({range: '1h', from: '2026-11-20T08:00:00Z', to: '2026-11-20T09:00:00Z'}, now), {name: 'custom', from: at('08'), to: at('09')});
	assert.deepEqual(rangeOf({to: '2026-11-20T09:00:00Z'}, now), {name: 'custom', from: at('09') - 86400e3, to: at('09')});
	assert.deepEqual(rangeOf({from: '2026-11-20T08:00:00Z', to: 'soon'}, now), {name: 'custom', from: at('08'), to: now});
});

test('a query has the fields of the filter that are set, and no others', () => {
	const query = queryOf({rule: '<b>&', user: '', other: 'x'}, {from: now - 1000, to: now}, {limit: 50});
	assert.equal(query.toString(), 'from=2026-11-20T11%3A59%3A59.000Z&to=2026-11-20T12%3A00%3A00.000Z&rule=%3Cb%3E%26&limit=50');
});
