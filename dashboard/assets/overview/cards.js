// SPDX-License-Identifier: Apache-2.0
//
// The health line and the cards of the overview. Each function returns {node, update()}.
//
//   healthLine(live)  the health and the remedies in a sentence each
//   storeCard(live), policyCard(live), overridesCard(live)
//   firstSteps(live, ctx)  commands to try before the first request

import {h, replace, show} from '../ui/dom.js';
import {ago, dateTime, dur, num} from '../ui/format.js';
import {keyed} from '../ui/keyed.js';
import {health} from './health.js';
import {copyLine} from '../shell/copy.js';
import {icon} from '../shell/icons.js';
import {actionOf, actions} from '../shell/vocabulary.js';

const minute = 60;
const marks = {ok: 'overview', note: 'note', warn: 'violations', bad: 'bad', unknown: 'activity'};

export function healthLine(live) {
	const node = h('section', {class: 'health', 'aria-label': 'Health'});
	const face = h('span', {class: 'health-icon'});
	const headline = h('strong', {class: 'health-word'});
	const detail = h('span');
	const list = h('ul', {class: 'plain health-items'});
	const said = h('p', {class: 'visually-hidden', role: 'status'});
	replace(node, face, h('div', {class: 'health-text'}, h('p', {class: 'health-line'}, headline, ' ', detail), list), said);
	const items = keyed(list, {id: (i) => `${i.id}${i.href ?? ''}`, make: healthItem});
	let level = '';
	const update = () => {
		const now = health({state: live.state, connection: live.connection, heard: live.heard, sums: live.sums(minute), rules: live.rules(minute), actions: actions()});
		if (level !== now.level) {
			node.dataset.level = now.level;
			replace(face, icon(marks[now.level]));
			if (level && now.level !== 'unknown') said.textContent = `${now.headline} ${now.items[0]?.text ?? ''}`;
			level = now.level;
		}
		set(headline, now.headline);
		set(detail, now.detail);
		items(now.items);
		list.hidden = now.items.length === 0;
		node.classList.toggle('stale', live.connection !== 'live' && live.state !== null);
	};
	return {node, update};
}

function set(node, text) {
	if (node.textContent !== text) node.textContent = text; // keeps the selection if nothing changed
}

// healthItem keeps its link while its text changes.
function healthItem({href}) {
	const [said, help] = [h('strong'), h('span')];
	const link = href?.startsWith('#/') ? h('a', {href}, 'Show') :
		href && h('button', {type: 'button', class: 'linklike', onclick: () => document.querySelector(href)?.scrollIntoView({behavior: 'smooth', block: 'center'})}, 'Show');
	const node = h('li', null, said, ' ', help, ' ', link);
	return {node, update({level, text, todo}) {
		node.className = `health-item health-${level}`;
		set(said, text);
		set(help, todo);
	}};
}

// factOf draws a term and its value: a text, or {at} for a time. mono selects a monospaced font.
function factOf({term}) {
	const node = h('dd');
	return {node: h('div', null, h('dt', null, term), node), update({value, mono}) {
		if (typeof value === 'object') replace(node, moment(value.at));
		else if (mono) replace(node, h('span', {class: 'mono'}, value));
		else set(node, value);
	}};
}

function card(id, title, link, href) {
	const badge = h('span');
	const list = h('dl', {class: 'facts facts-rows'});
	const rest = h('div');
	const body = h('div', {class: 'stack-small'}, list, rest);
	const node = h('section', {class: 'card', id}, h('div', {class: 'card-head'}, h('h2', null, title), badge, link && h('a', {class: 'btn btn-ghost btn-small', href}, link)), body);
	const facts = keyed(list, {id: (f) => f.term, make: factOf});
	let before = '';
	// redraw updates only changed nodes, so that a text selection survives. pairs are [term, value, mono]; about is the
	// data behind restOf.
	const redraw = ({kind = '', word, dot = true, pairs = [], about, restOf}) => {
		facts(pairs.filter(([, value]) => value).map(([term, value, mono = false]) => ({term, value, mono})));
		list.hidden = pairs.length === 0;
		for (const t of node.querySelectorAll('time')) tell(t);
		badge.className = `badge ${kind}`;
		badge.hidden = word === '';
		if (badge.textContent !== word) replace(badge, dot && h('span', {class: 'dot'}), word);
		const now = JSON.stringify(about);
		if (now === before) return;
		before = now;
		replace(rest, restOf());
		rest.hidden = rest.childElementCount === 0;
	};
	return {node, redraw, waiting(...terms) {
		redraw({word: '', dot: false, pairs: terms.map((term) => [term, '–']), about: null, restOf: () => null}); // reserves the final height
	}};
}

const stateWords = {ok: ['badge-ok', 'answers'], degraded: ['badge-warn', 'degraded'], down: ['badge-bad', 'down']};
const sinceWords = {ok: 'Answers since', degraded: 'Degraded since', down: 'Down since'};
const breakerWords = {closed: 'closed: the store is used', open: 'open: the store is skipped', 'half-open': 'half-open: the store is probed'};
const storeWords = {memory: 'memory (this server only)', redis: 'Redis', postgres: 'PostgreSQL'};

export function storeCard(live) {
	const made = card('store-card', 'Store');
	const update = () => {
		const s = live.state?.store;
		if (!s) {
			made.waiting('Kind', 'Address', 'Buckets');
			return;
		}
		const [kind, word] = stateWords[s.state] ?? ['', s.state];
		made.redraw({kind, word, pairs: [
			['Kind', storeWords[s.kind] ?? s.kind],
			['Address', s.address && show(s.address, 200), true],
			['Circuit breaker', s.breaker === 'none' ? null : breakerWords[s.breaker] ?? s.breaker],
			[sinceWords[s.state] ?? 'Since', s.since && {at: s.since}],
			['Buckets', s.buckets === null ? null : `${num(s.buckets)} not full`],
			['Servers', s.kind !== 'memory' && s.nodes && `${num(s.nodes)} ${s.nodes === 1 ? 'uses' : 'share'} this store`],
		], about: [s.state, s.detail], restOf: () => s.detail && h('p', {class: s.state === 'down' ? 'notice notice-bad' : 'notice notice-warn'}, show(s.detail, 600))});
	};
	return {node: made.node, update};
}

function moment(at) {
	return tell(h('time', {datetime: at, title: dateTime(at)}));
}

// tell updates the age of a time element.
function tell(node) {
	const said = ago(node.dateTime);
	if (node.textContent !== said) node.textContent = said;
	return node;
}

export function policyCard(live) {
	const made = card('policy-card', 'Policy', 'Rules', '#/rules');
	const update = () => {
		const p = live.state?.policy;
		if (!p) {
			made.waiting('Source', 'Rules', 'Active since', 'Reloads');
			return;
		}
		made.redraw({kind: p.failing ? 'badge-warn' : 'badge-ok', word: p.failing ? 'reload failed' : 'active', pairs: [
			['Source', show(p.source, 200), true],
			['Version', p.version ? String(p.version) : null],
			['Bundle', p.bundle ? `${p.bundle.digest}, ${p.bundle.from_disk ? 'from the server’s disk; ' : ''}${p.bundle.age < 60 ? 'confirmed in the last minute' : `last confirmed ${dur(p.bundle.age)} ago`}` : null],
			['Rules', num(p.rules)],
			['Active since', p.loaded && {at: p.loaded}],
			['Expires', p.expires && {at: p.expires}],
			['Reloads', `${num(p.reloads)} succeeded${p.refused ? `, ${num(p.refused)} failed` : ''}`],
		], about: [p.failing, p.failed, p.errors], restOf: () => p.failing && refusal(p)});
	};
	return {node: made.node, update};
}

function refusal(p) {
	return h('div', {class: 'notice notice-warn'}, h('div', {class: 'stack-small'},
		h('p', null, h('strong', null, 'The last reload failed'), p.failed && [' ', moment(p.failed)], '. The previous policy stays active.'),
		p.errors?.length > 0 && h('ul', {class: 'plain mistakes mono', tabindex: '0', 'aria-label': 'Errors'}, p.errors.map((e) => h('li', null, show(e, 1000))))));
}

export function overridesCard(live) {
	const made = card('overrides-card', 'Overrides', 'Show', '#/keys?kind=overrides');
	const update = () => {
		const o = live.state?.overrides;
		if (!o) {
			made.waiting();
			return;
		}
		const some = Object.entries(o).filter(([, n]) => n > 0);
		const all = some.reduce((sum, [, n]) => sum + n, 0);
		made.redraw({word: all === 0 ? 'none' : `${num(all)} active`, dot: false, about: o, restOf: () => (all === 0 ?
			h('p', {class: 'muted'}, 'The policy applies to all clients. To block a key or change its limit, open its page.') :
			h('ul', {class: 'plain over-actions'}, some.map(([action, n]) => {
				const {count, color} = actionOf(action);
				return h('li', null, h('span', {class: `badge badge-${color}`}, num(n)), ' ', count);
			})))});
	};
	return {node: made.node, update};
}

// firstSteps replaces the empty charts in the same space, so that nothing moves.
export function firstSteps(live, ctx) {
	const body = h('div', {class: 'stack-small'});
	const node = h('section', {class: 'card first-steps', hidden: true}, h('h2', null, 'No requests yet'), body);
	let shown = false;
	const update = () => {
		const idle = live.state !== null && live.samples.length > 0 && live.samples.every((s) => s[1] + s[2] === 0);
		if (idle === shown) return;
		shown = idle;
		node.hidden = !idle;
		node.parentElement?.classList.toggle('idle', idle);
		if (!idle) return;
		const commands = ctx.me.try ?? [];
		replace(body, commands.length > 0 ? [h('p', {class: 'muted'}, commands.length > 1 ? 'Run one of these commands in a terminal and watch this page.' : 'Run this command in a terminal and watch this page.'), commands.map((c) => copyLine(c))] :
			h('p', {class: 'muted'}, 'Send a request through the limiter and watch this page.'),
		h('p', {class: 'muted'}, 'Or try a bucket in the ', h('a', {href: '#/playground'}, 'playground'), ', or ', h('a', {href: '#/explain'}, 'explain a request'), '.'));
	};
	return {node, update};
}
