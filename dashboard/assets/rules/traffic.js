// SPDX-License-Identifier: Apache-2.0
//
// The traffic of a rule, from the event stream (live.js).
//
//   trafficCell(name)   {node, update(live)}: the rate, the share of denials, and a chart of the last minute
//   trafficTiles(name)  {node, update(live)}: the same, larger
//   countsOf(live, name) [allowed, denied, shadow, near, degraded] of the last minute

import {h} from '../ui/dom.js';
import {num, pct, rate} from '../ui/format.js';
import {bar, sparkline} from '../ui/chart.js';

const window = 60; // seconds

export function countsOf(live, name) {
	const sums = live.rules(window);
	return Object.hasOwn(sums, name) ? sums[name] : [0, 0, 0, 0, 0];
}

// secondsOf returns a number for each of the last seconds, null before the page was opened.
function secondsOf(live, name, of) {
	const values = new Array(window).fill(null);
	const to = live.seconds.at(-1)?.[0] ?? 0;
	for (const [t, rules] of live.seconds) {
		const counts = rules.get(name);
		values[window - 1 - (to - t)] = counts ? of(counts) : 0;
	}
	return values;
}

export function trafficCell(name) {
	const flow = h('span', {class: 'traffic-rate'});
	const share = h('span', {class: 'traffic-share'});
	const line = h('span', {class: 'traffic-line'});
	const drawn = sparkline(line, [], {color: 'level'});
	const [meter, denied, shadowed] = [bar(0, 1, {color: 'denied'}), h('span'), h('span', {class: 'shadow nowrap'})];
	share.append(meter, denied, shadowed);
	const node = h('div', {class: 'traffic'}, flow, line, share);
	let before = '';
	let asleep = true; // nothing drawn yet
	return {node, update(live) {
		const [allowed, refused, shadow] = countsOf(live, name);
		const all = allowed + refused;
		const flows = rate(all / live.ruleSeconds(window));
		if (flow.textContent !== flows) flow.textContent = flows; // most of several hundred rules have not changed
		const quiet = all === 0 && shadow === 0;
		if (!quiet || !asleep) drawn.update(quiet ? [] : secondsOf(live, name, (counts) => Math.max(counts[0] + counts[1], counts[2])));
		asleep = quiet;
		const said = JSON.stringify([allowed, refused, shadow]);
		if (said === before) return;
		before = said;
		const words = quiet ? 'no decisions' : refused === 0 && shadow > 0 ? '' : `${pct(refused, all)} denied`;
		meter.querySelector('.bar-part').style.width = `${(100 * refused / Math.max(all, 1)).toFixed(2)}%`;
		denied.className = refused > 0 ? 'denied' : 'muted';
		denied.textContent = words;
		shadowed.hidden = shadow === 0;
		shadowed.textContent = shadow > 0 ? `${num(shadow)} in shadow` : '';
	}};
}

export function trafficTiles(rule) {
	const kinds = [
		{label: 'Allowed', color: 'allowed', column: 0, note: (c) => `${num(c[0])} in the last minute`},
		{label: 'Denied', color: 'denied', column: 1, note: (c) => `${pct(c[1], c[0] + c[1])} of its decisions`},
		{label: 'In shadow', color: 'shadow', column: 2, note: (c) => (rule.mode === 'enforce' ? 'the rule is enforced' : `${num(c[2])} would be denied`)},
		{label: 'Near the limit', color: 'near', column: 3, note: (c) => `${num(c[3])} in the last minute`},
	].map((kind) => {
		const value = h('span', null, '–');
		const note = h('p', {class: 'tile-note'}, ' ');
		const node = h('div', {class: 'tile'}, h('p', {class: 'tile-label'}, h('span', {class: `dot ${kind.color}`}), kind.label),
			h('p', {class: 'tile-value'}, value, h('span', {class: 'tile-unit'}, ' /s')), note);
		return {...kind, node, value, says: note, spark: sparkline(node, [], {color: kind.color, max: 1})};
	});
	return {node: h('div', {class: 'tiles'}, kinds.map((k) => k.node)), update(live) {
		const counts = countsOf(live, rule.name);
		for (const k of kinds) {
			k.value.textContent = rate(counts[k.column] / live.ruleSeconds(window)).replace('/s', '');
			k.says.textContent = k.note(counts);
			k.spark.update(secondsOf(live, rule.name, (second) => second[k.column]));
		}
	}};
}
