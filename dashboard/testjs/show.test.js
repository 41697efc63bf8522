// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import {test} from 'node:test';
import {keyText, show} from '../assets/ui/dom.js';

for (const [name, text, want] of [
	['plain', 'Größe 10 €', 'Größe 10 €'],
	['markup', '<b>&amp;', '<b>&amp;'],
	['lines', 'a\r\nb\tc\x00', String.raw`a\r\nb\tc\0`],
	['control', 'a\x1b[31m\x7f', String.raw`a\u001b[31m\u007f`],
	['bidi', '\u202eabc\u2066', String.raw`\u202eabc\u2066`],
	['zero width', 'a\u200bb\ufeffc\u00add', String.raw`a\u200bb\ufeffc\u00add`],
	['blanks', 'a\u00a0b\u3000c\u2003d', String.raw`a\u00a0b\u3000c\u2003d`],
	['fillers', '\u3164\u115f\u2800', String.raw`\u3164\u115f\u2800`],
	['tags', 'a\u{e0041}', String.raw`a\u{e0041}`],
	['heaped marks', 'e' + '\u0301'.repeat(5), 'e' + '\u0301'.repeat(3) + String.raw`\u0301\u0301`],
	['right to left letters', 'שלום', 'שלום'],
	['replacement', 'a\ufffd', 'a\ufffd'],
	['half a pair', 'a\ud800b', String.raw`a\ud800b`],
	['long', 'x'.repeat(10240), 'x'.repeat(160) + '… (10,240 characters)'],
	['long, cut within a pair', 'x'.repeat(159) + '😀y', 'x'.repeat(159) + '… (161 characters)'],
]) {
	test(`show escapes invisible characters: ${name}`, () => assert.equal(show(text), want));
}

test('keyText names the parts of a key without their kinds', () => {
	assert.equal(keyText([]), 'everyone');
	assert.equal(keyText([{name: 'header:x-user', value: 'al\u202eice'}, {name: 'method', value: 'GET'}]), String.raw`x-user al\u202eice, method GET`);
});
