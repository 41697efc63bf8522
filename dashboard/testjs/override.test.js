// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {test} from 'node:test';
import {expiryOf, keptOf, keptWords, limitFields, limitOverride, parseDuration, wordOf} from '../assets/overrides/form.js';
import {limitText, whomText} from '../assets/overrides/words.js';
import {learn} from '../assets/shell/vocabulary.js';

const {algorithms} = JSON.parse(readFileSync(new URL('engine.json', import.meta.url)));
learn({algorithms});

test('durations are read with their units', () => {
	for (const [text, want] of [
		['90m', 5400], ['1.5h', 5400], ['2d 6h', 194400], [' 15 min ', 900], ['1w', 604800], ['1h30m', 5400],
		['soon', null], ['', null], ['0h', null], ['-1h', null], ['90', null], ['1h x', null], ['1 month', null],
	]) assert.equal(parseDuration(text), want, text);
});

test('an override ends by the given clock, in whole seconds', () => {
	const now = Date.parse('2026-11-20T12:00:00.500Z');
	assert.equal(expiryOf('90m', now), '2026-11-20T13:30:01Z');
	assert.throws(() => expiryOf('soon', now), /“soon” is not a duration; enter a number and a unit/);
});

test('a number of seconds is written as in a policy', () => {
	for (const [seconds, want] of [[1, '1s'], [60, '1m'], [90, '90s'], [7200, '2h'], [25200, '7h'], [86400, '1d'], [0.25, '250ms'], [0.000001, '1us']]) {
		assert.equal(wordOf(seconds), want);
	}
});

test('another limit keeps where the windows of the rule begin', () => {
	const target = {rule: 'search', limit: 'search', algorithm: 'fixed_window', refill: 'interval', anchor: 'epoch', start: 25200, tokens: 10, per: 86400, capacity: 15};
	const fields = limitFields(target);
	assert.deepEqual(fields.map((f) => [f.label, String(f.value)]), [['Tokens', '10'], ['Window', '1d'], ['Capacity', '15']]);
	assert.match(fields[1].hint, /aligned to 1970-01-01 00:00 UTC, and 7h/);
	assert.deepEqual(limitOverride(target, {tokens: '10', every: '1d', burst: '30'}),
		{algorithm: 'fixed_window', algorithm_config: {tokens: 10, window: '1d', capacity: 30, start: '7h'}});
	assert.deepEqual(limitOverride({...target, anchor: 'key', start: 0}, {tokens: '10', every: '1d'}),
		{algorithm: 'fixed_window', algorithm_config: {tokens: 10, window: '1d', anchor: 'key'}});
});

const kept = {max_reserved: 2.5, staged_actions: [{threshold: 80, action: 'warn'}, {threshold: 95, action: 'throttle', delay: '500ms'}, {threshold: 100, action: 'reject'}]};

test('another limit keeps staged_actions and max_reserved of the rule, or of the override in its place', () => {
	const rules = [{limits: [{name: 'search', kept}, {name: 'twice/few', kept: {max_reserved: 1}}]}];
	const target = {rule: 'search', limit: 'search', algorithm: 'token_bucket'};
	assert.deepEqual(keptOf(target, rules), kept);
	assert.deepEqual(keptOf({...target, limit: 'other'}, rules), {});
	assert.deepEqual(keptOf({...target, override: {algorithm_config: {rate: '1/1s', burst: 3, max_reserved: 4}}}, rules), {max_reserved: 4});
	assert.deepEqual(keptOf({rule: 'twice', limit: 'twice/few', override: {limits: [{name: 'many', max_reserved: 5}, {name: 'few', max_reserved: 6}]}}, rules), {max_reserved: 6});
	assert.equal(keptWords(kept), ' Unchanged: staged_actions (from 80% used requests get a warning, from 95% used each request waits 500ms) and max_reserved (2.5).');
	assert.equal(keptWords({}), '');
	assert.deepEqual(limitOverride({...target, kept}, {tokens: '10', every: '1h', burst: '30'}),
		{algorithm: 'token_bucket', algorithm_config: {rate: '10/1h', burst: 30, ...kept}});
	assert.deepEqual(limitOverride({rule: 'twice', limit: 'twice/few', algorithm: 'fixed_window', kept: {}}, {tokens: 'many', every: '1d'}),
		{limits: [{name: 'few', algorithm: 'fixed_window', tokens: 'many', window: '1d'}]});
});

test('an override is described by whom it is about and by its limit', () => {
	assert.equal(whomText({match: {'header:x-user': {not: ['a', 'b']}}, rules: ['search']}), 'header:x-user = not a or b · rule search');
	assert.equal(whomText({}), 'all requests');
	assert.equal(limitText({algorithm_config: {rate: '3/10h', burst: 5}}), '3/10h, capacity 5');
	assert.equal(limitText({limits: [{name: 'few', tokens: 15, window: '1d'}]}), 'few: 15 per 1d');
});
