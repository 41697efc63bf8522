// SPDX-License-Identifier: Apache-2.0
//
// Numbers and times for people.
//
//   num(n)          1,234 · 12.3k · 4.56M            rate(n)     12.4/s
//   dur(seconds)    1.2 ms · 3.4 s · 5 min 20 s       pct(part, all)  3.1%
//   ago(date)       12 s ago · in 3 min               time(date)  14:03:27
//   dateTime(date)  4 May 2026, 14:03:27              tokens(x)   41.5
//
// A missing value (null, undefined, NaN) is an en dash. A date is a Date, an RFC 3339 string or Unix seconds.

const nothing = '–';
const tidy = new Intl.NumberFormat('en', {maximumFractionDigits: 0});
const oneDigit = new Intl.NumberFormat('en', {maximumFractionDigits: 1});
const threeDigits = new Intl.NumberFormat('en', {maximumFractionDigits: 3});
const clockText = new Intl.DateTimeFormat('en-GB', {hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23'});
const dayText = new Intl.DateTimeFormat('en-GB', {day: 'numeric', month: 'short', year: 'numeric'});
const steps = [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']];

function isNumber(n) {
	return n !== null && n !== undefined && n !== '' && Number.isFinite(Number(n));
}

// Three significant digits: 1.23, 12.3, 123.
function three(n) {
	const size = Math.abs(n);
	return String(Number(n.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2)));
}

export function num(n) {
	if (!isNumber(n)) return nothing;
	n = Number(n);
	const size = Math.abs(n);
	if (size < 10000) return size >= 100 || Number.isInteger(n) ? tidy.format(n) : three(n);
	for (const [unit, name] of steps) {
		if (size >= unit * 0.9995) return `${three(n / unit)}${name}`;
	}
	return tidy.format(n);
}

export function rate(n) {
	if (!isNumber(n)) return nothing;
	n = Number(n);
	return `${Math.abs(n) < 100 ? oneDigit.format(n) : num(n)}/s`;
}

export function tokens(x) {
	if (!isNumber(x)) return nothing;
	x = Number(x);
	return Math.abs(x) < 1e6 ? threeDigits.format(x) : num(x);
}

export function dur(seconds) {
	if (!isNumber(seconds)) return nothing;
	const s = Number(seconds);
	const size = Math.abs(s);
	if (size === 0) return '0 s';
	if (size < 0.9995e-6) return `${three(s * 1e9)} ns`;
	if (size < 0.9995e-3) return `${three(s * 1e6)} µs`;
	if (size < 0.9995) return `${three(s * 1e3)} ms`;
	if (size < 59.95) return `${oneDigit.format(s)} s`;
	if (size < 3599.5) return two(s, 60, 'min', 's');
	if (size < 86370) return two(s / 60, 60, 'h', 'min');
	return two(s / 3600, 24, 'd', 'h');
}

function two(n, base, big, little) {
	n = Math.round(n);
	const rest = Math.abs(n % base);
	return `${Math.trunc(n / base)} ${big}${rest ? ` ${rest} ${little}` : ''}`;
}

export function pct(part, all) {
	if (!isNumber(part) || !isNumber(all)) return nothing;
	if (Number(all) === 0) return '0%';
	const p = 100 * Number(part) / Number(all);
	if (p > 0 && p < 0.1) return '<0.1%';
	if (p > 99.9 && p < 100) return '>99.9%';
	return `${oneDigit.format(p)}%`;
}

function toDate(date) {
	if (date === null || date === undefined || date === '') return null;
	const d = date instanceof Date ? date : new Date(typeof date === 'number' ? date * 1000 : date);
	return Number.isNaN(d.getTime()) ? null : d;
}

export function ago(date, now = Date.now()) {
	const d = toDate(date);
	if (!d) return nothing;
	const s = (now - d.getTime()) / 1000;
	if (Math.abs(s) < 1.5) return 'just now';
	const size = Math.abs(s);
	const text = size < 60 ? `${Math.round(size)} s` : size < 5400 ? `${Math.round(size / 60)} min` :
		size < 129600 ? `${Math.round(size / 3600)} h` : `${Math.round(size / 86400)} days`;
	return s > 0 ? `${text} ago` : `in ${text}`;
}

export function time(date) {
	const d = toDate(date);
	return d ? clockText.format(d) : nothing;
}

export function dateTime(date) {
	const d = toDate(date);
	return d ? `${dayText.format(d)}, ${clockText.format(d)}` : nothing;
}
