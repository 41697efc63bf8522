// SPDX-License-Identifier: Apache-2.0
//
// The overview: health, traffic, rules, denied keys, store, policy and overrides.

import {h} from '../ui/dom.js';
import {latencyChart, rateChart, rateTiles} from '../overview/charts.js';
import {busiestRules, topDenied} from '../overview/lists.js';
import {firstSteps, healthLine, overridesCard, policyCard, storeCard} from '../overview/cards.js';

export default {
	title: 'Overview',
	nav: 'overview',
	async mount(root, _, ctx) {
		const {live} = ctx;
		const latency = latencyChart(live);
		const parts = {
			health: healthLine(live), first: firstSteps(live, ctx), tiles: rateTiles(live), rates: rateChart(live, (s) => latency.range(s)), latency,
			rules: busiestRules(live), keys: ctx.me.features?.top ? topDenied(live, ctx) : null,
			store: storeCard(live), policy: policyCard(live), overrides: overridesCard(live),
		};
		const all = Object.values(parts).filter(Boolean);
		root.append(h('div', {class: 'stack over'}, parts.health.node, parts.tiles.node,
			h('div', {class: 'over-wide over-charts'}, parts.rates.node, parts.latency.node, parts.first.node),
			h('div', {class: parts.keys ? 'over-wide over-lists' : 'over-lists'}, parts.rules.node, parts.keys?.node),
			h('div', {class: 'over-cards'}, parts.store.node, parts.policy.node, parts.overrides.node)));
		const update = () => all.forEach((p) => p.update());
		const offs = ['state', 'samples', 'connection'].map((name) => live.on(name, update));
		const lost = setInterval(() => { // without events, only this timer updates the elapsed time
			if (live.connection !== 'live') parts.health.update();
		}, 1000);
		update();
		return () => {
			clearInterval(lost);
			offs.forEach((off) => off());
			all.forEach((p) => p.destroy?.());
		};
	},
};
