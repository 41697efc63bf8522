// SPDX-License-Identifier: Apache-2.0
//
// The queries of the violations page.
//
//   ranges                       the time ranges with a button: [name, label, seconds]
//   rangeOf(filter, now)         {name, from, to} in ms, of a named range or of from and to
//   queryOf(filter, range, more) the query of v1/violations

export const ranges = [['15m', '15 min', 900], ['1h', '1 h', 3600], ['24h', '24 h', 86400], ['7d', '7 days', 604800]];
export const firstRange = '24h';

// fields are the filters except the time, as named in the fragment and by the server.
export const fields = ['rule', 'mode', 'reason', 'endpoint', 'address', 'user', 'key'];

export function rangeOf(filter, now) {
	const from = Date.parse(filter.from ?? '');
	const to = Date.parse(filter.to ?? '');
	if (!Number.isNaN(from) || !Number.isNaN(to)) {
		const end = Number.isNaN(to) ? now : to;
		return {name: 'custom', from: Number.isNaN(from) ? end - 86400e3 : from, to: end};
	}
	const [name, , seconds] = ranges.find(([n]) => n === filter.range) ?? ranges.find(([n]) => n === firstRange);
	return {name, from: now - seconds * 1000, to: now};
}

export function queryOf(filter, range, more = {}) {
	const values = {from: new Date(range.from).toISOString(), to: new Date(range.to).toISOString()};
	for (const name of fields) values[name] = filter[name];
	return new URLSearchParams(Object.entries({...values, ...more}).filter(([, value]) => value));
}
