// SPDX-License-Identifier: Apache-2.0
//
// The health of the limiter in plain words.
//
//   health({state, connection, heard, sums, rules, actions}) → {level: ok|note|warn|bad|unknown, headline, detail, items}
//     sums and rules cover the last minute. items: [{id, level, text, todo, href}], the worst first. id identifies a
//     problem while it lasts.
//
// Pure.

import {show} from '../ui/dom.js';
import {ago, dur, num, pct, time} from '../ui/format.js';

const soon = 3600; // seconds before the expiry of a policy in which the page warns
const patience = 10000; // milliseconds after which the last event is out of date

const rankOf = {ok: 0, note: 1, warn: 2, bad: 3};
const wordsOf = {warn: 'Limiting, with a problem.', bad: 'Action required.'};

export function health({state, connection, heard, sums, rules, now = Date.now(), actions}) {
	if (!state) {
		const ended = connection === 'ended';
		return {level: 'unknown', items: [], headline: ended ? 'Not signed in.' : 'Connecting to the server…',
			detail: ended ? 'Sign in to see the state of the limiter.' : connection === 'reconnecting' ? 'The server does not respond. Retrying automatically.' : ''};
	}
	const items = [...ofServer(state), ...ofStore(state, sums, now), ...ofPolicy(state, now), ...ofOverrides(state, actions)]
		.sort((a, b) => rankOf[b.level] - rankOf[a.level]);
	const level = items[0]?.level ?? 'ok';
	if (connection !== 'live' && heard && now - heard.getTime() > patience) {
		return {level: 'unknown', items: [], headline: connection === 'ended' ? 'Not signed in.' : 'The server does not respond.',
			detail: `Data from ${time(heard)}.${connection === 'ended' ? '' : ' Retrying automatically.'}`};
	}
	const said = traffic(sums, rules);
	return wordsOf[level] ? {level, items, headline: wordsOf[level], detail: `${said.headline} ${said.detail}`.trim()} : {level, items, ...said};
}

// traffic describes the share of denials in the last minute. Denials do not change the level: they are normal.
function traffic(sums, rules) {
	const all = sums.allowed + sums.denied;
	if (all === 0) return {headline: 'Idle.', detail: 'No requests in the last minute.'};
	const per = all / Math.max(1, sums.seconds);
	const rate = `${num(per < 10 ? Number(per.toFixed(1)) : Math.round(per))} req/s`;
	if (sums.denied === 0) return {headline: `Allowing all of ${rate}.`, detail: 'No request was denied in the last minute.'};
	return {headline: `Limiting ${pct(sums.denied, all)} of ${rate}.`, detail: mostly(rules)};
}

// mostly returns the name of the rule with the most denials, if one stands out.
function mostly(rules) {
	const denying = Object.entries(rules).filter(([, r]) => r[1] > 0).sort((a, b) => b[1][1] - a[1][1]);
	if (denying.length === 0) return 'In the last minute.';
	const [name, [, most]] = denying[0];
	const all = denying.reduce((sum, [, r]) => sum + r[1], 0);
	if (denying.length === 1) return `In the last minute, all by rule ${show(name, 64)}.`;
	return `In the last minute, ${most >= all / 2 ? 'mostly' : `${pct(most, all)} of them`} by rule ${show(name, 64)}.`;
}

function ofServer({ready, ending}) {
	if (ending) return [{id: 'ending', level: 'warn', text: 'The server is shutting down.', todo: 'It finishes active requests. This page reconnects automatically.'}];
	if (!ready) return [{id: 'ready', level: 'bad', text: 'The server is not ready.', todo: '/readyz shows the reason. Load balancers send no requests until then.'}];
	return [];
}

const storeNames = {memory: 'memory', redis: 'Redis', postgres: 'PostgreSQL'};

function ofStore({store}, sums, now) {
	const since = store.since ? ` since ${time(store.since)} (${dur(Math.max(0, (now - Date.parse(store.since)) / 1000))})` : '';
	const name = `The store (${storeNames[store.kind] ?? store.kind})`;
	const without = `${num(sums.degraded)} ${sums.degraded === 1 ? 'decision in the last minute was' : 'decisions in the last minute were'} made without`;
	const lost = sums.degraded > 0 ? ` ${without} it.` : '';
	if (store.state === 'down') {
		return [{id: 'store', level: 'bad', text: `${name} has not responded${since}.${lost}`, href: '#store-card',
			todo: `Check that the server can reach ${show(store.address, 120)}. Until then, each rule follows its on_store_error.`}];
	}
	if (store.state === 'degraded') {
		return [{id: 'store', level: 'warn', text: `${name} has been degraded${since}.${lost}`, todo: show(store.detail, 300) || 'Check whether it is slow or overloaded.', href: '#store-card'}];
	}
	if (lost) {
		return [{id: 'store', level: 'warn', text: `${without} the store.`,
			todo: 'The store responds again. This message disappears after a minute.', href: '#store-card'}];
	}
	return [];
}

function ofPolicy({policy}, now) {
	const items = [];
	if (policy.failing) {
		const n = policy.errors?.length ?? 0;
		items.push({id: 'reload', level: 'warn', text: `The last policy reload failed ${ago(policy.failed, now)}${n ? `: ${num(n)} ${n === 1 ? 'error' : 'errors'}` : ''}.`,
			todo: `${policy.version ? `Version ${policy.version}` : 'The previous policy'} stays active. Fix the errors below and reload it.`, href: '#policy-card'});
	}
	if (policy.expires) {
		const left = (Date.parse(policy.expires) - now) / 1000;
		if (left <= 0) items.push({id: 'expires', level: 'bad', text: `The policy expired ${ago(policy.expires, now)}.`, todo: 'It stays active, but the server cannot load it again. Publish a new policy.'});
		else if (left < soon) items.push({id: 'expires', level: 'warn', text: `The policy expires ${ago(policy.expires, now)}.`, todo: 'Publish a new policy before then.'});
	}
	return items;
}

function ofOverrides({overrides}, actions) {
	const items = [];
	const link = '#/keys?kind=overrides';
	for (const a of actions ?? []) {
		if (!a.suspends || !overrides?.[a.action]) continue;
		const rest = a.some ? {level: 'note', todo: 'End it to enforce them again.'} : {level: 'bad', todo: 'End it after the emergency.'};
		items.push({id: a.action, ...rest, text: a.notice, href: link});
	}
	return items;
}
