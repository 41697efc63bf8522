// SPDX-License-Identifier: Apache-2.0
//
// The trace of a decision through the rules.
//
//   traceOf(explanation, tree, heading)  a node for a response of v1/explain; heading is the tag of its heading

import {h, show} from '../ui/dom.js';
import {ago, dateTime, dur, time, tokens} from '../ui/format.js';
import {icon} from '../shell/icons.js';
import {ruleHref, secretName} from '../rules/words.js';

// Outcomes of rules that do not apply to the request.
const asides = new Set(['unmatched', 'off', 'inactive', 'taken', 'unneeded', 'lacking']);
const mostRules = 200;

export function traceOf(e, tree, heading = 'h3') {
	const shown = e.rules.length > mostRules ? e.rules.filter((r) => !asides.has(r.outcome)) : e.rules;
	const rest = e.rules.length - shown.length;
	return h('div', {class: 'trace stack-small'}, verdict(e), globalOverrides(e), shown.length > 0 && h(heading, {class: 'trace-head'}, 'Rules in policy order'),
		h('ol', {class: 'trace-rules plain'}, shown.map((r) => ruleStep(r, e, tree))),
		rest > 0 && h('p', {class: 'muted'}, `${rest.toLocaleString('en')} more rules do not apply.`),
		h('p', {class: 'muted small'}, `As of ${dateTime(e.at)}${e.policy_version ? `, policy version ${e.policy_version}` : ''}${e.price_version ? `, prices ${show(e.price_version, 40)}` : ''}. No tokens were spent.`));
}

// verdict describes the decision in a sentence.
function verdict(e) {
	const {allowed, wait} = e.decision;
	const colon = e.why.indexOf(': ');
	const by = /^(denied) by rule (.*)$/s.exec(e.why.slice(0, colon));
	const reason = by ? `by rule ${by[2]}: ${e.why.slice(colon + 2)}` : e.why.slice(e.why.startsWith('allowed') || e.why.startsWith('denied') ? (colon < 0 ? e.why.length : colon + 2) : 0);
	return h('div', {class: `verdict ${allowed ? 'verdict-allowed' : 'verdict-denied'}`},
		h('span', {class: 'verdict-mark'}, icon(allowed ? 'ok' : 'bad')),
		h('div', null, h('p', {class: 'verdict-word'}, allowed ? 'Allowed' : 'Denied', e.decision.degraded && h('span', {class: 'badge badge-degraded'}, 'degraded')),
			h('p', {class: 'verdict-why'}, show(reason, 600)), h('p', {class: 'verdict-when'}, passTimeText(e, allowed, wait))));
}

// passTimeText describes the time at which the request is allowed.
function passTimeText(e, allowed, wait) {
	if (allowed) return wait > 0 ? `It starts in ${dur(wait)}.` : null;
	if (e.passes_at === null) return e.decision.degraded ? null : 'Waiting does not help.';
	if (e.override) return `The override ends ${ago(e.passes_at, Date.parse(e.at))}.`;
	return ['Allowed in ', h('strong', null, dur(e.decision.retry_after)), `, at ${time(e.passes_at)}, unless other requests take the tokens.`];
}

// globalOverrides returns the overrides that apply before all rules.
function globalOverrides(e) {
	return [[e.override, 'This override decides regardless of the rules'], [e.shadowed_by, 'This override puts all rules in shadow mode']].filter(([o]) => o)
		.map(([o, said]) => h('div', {class: 'notice notice-warn'}, h('div', null, h('strong', null, `${said}: `), overrideWords(o))));
}

function overrideWords(o) {
	return [h('span', {class: 'strong'}, show(o.id, 64)), ` · ${show(o.reason, 256)}${o.author ? ` · ${show(o.author, 128)}` : ''} · ends `,
		h('time', {datetime: o.expires_at, title: dateTime(o.expires_at)}, ago(o.expires_at))];
}

// partOf returns the effect of a rule: a mark, a text and a color.
function partOf(r) {
	const denies = r.limits.some((l) => l.asked && !l.allowed);
	if (r.shadow) return {mark: '~', word: denies || r.outcome === 'denying' || r.outcome === 'blocked' ? 'would deny, in shadow' : 'allows, in shadow', color: 'shadow'};
	if (r.outcome === 'denying' || r.outcome === 'blocked' || denies) return {mark: '✗', word: r.outcome === 'blocked' ? 'blocks it' : 'denies it', color: 'denied'};
	if (r.outcome === 'exempt') return {mark: '✓', word: 'exempts it', color: 'allowed'};
	if (r.outcome === 'applies' && r.limits.some((l) => l.asked)) return {mark: '✓', word: 'allows it', color: 'allowed'};
	const words = {applies: 'not checked', unmatched: 'does not match', lacking: 'key missing', taken: 'an earlier tier applied', unneeded: 'not needed', off: 'off', inactive: 'not active now'};
	return {mark: '–', word: words[r.outcome] ?? r.outcome, color: 'none'};
}

function ruleStep(r, e, tree) {
	const part = partOf(r);
	const aside = asides.has(r.outcome);
	return h('li', {class: `step step-${part.color}${aside ? ' step-aside' : ''}`},
		h('span', {class: 'step-mark', 'aria-hidden': 'true'}, part.mark),
		h('div', {class: 'step-body'},
			h('div', {class: 'row step-line'}, h('a', {class: 'step-name', href: ruleHref(r.name)}, show(r.name, 64)), h('span', {class: `badge badge-${part.color}`}, part.word),
				r.mode !== 'enforce' && r.mode !== 'off' && h('span', {class: 'badge'}, show(r.mode, 20))),
			r.attribute ? comparison(r, tree) : r.outcome !== 'off' && h('p', {class: 'step-why'}, show(r.override ? withoutOverride(r.why) : r.why, 500)),
			r.override && h('p', {class: 'step-override'}, 'Override ', overrideWords(r.override)),
			!aside && r.facts && h('ul', {class: 'plain small muted'}, r.facts.map((f) => h('li', null, `${show(f.label, 100)}: ${show(f.value, 400)}`))),
			r.limits.map((l) => limitStep(l, e, r))));
}

// withoutOverride returns why without the text of the override, which is shown separately.
function withoutOverride(why) {
	return why.replace(/(?:; it has another limit)?: override .*$/s, '');
}

// comparison shows an attribute of the request and the value that the rule requires.
function comparison(r, tree) {
	const hidden = secretName(r.attribute, tree); // it may be a credential
	const has = r.has === undefined || r.has === null ? h('span', {class: 'muted'}, 'absent') : h('bdi', {dir: 'ltr', class: 'mono'}, hidden ? '•••' : r.has === '' ? '(empty)' : show(r.has, 120));
	const wants = r.wants ? h('bdi', {dir: 'ltr', class: 'mono'}, hidden && r.wants.includes('"') ? '•••' : wantsWords(show(r.wants, 200))) : 'a value for the key';
	return h('dl', {class: 'compared'}, h('dt', null, h('code', null, show(r.attribute, 100))), h('dd', null, has), h('dt', null, 'required'), h('dd', null, wants),
		!asides.has(r.outcome) && [h('dt', null, 'result'), h('dd', null, show(r.why, 500))]);
}

function wantsWords(wants) {
	return {'not any value': 'absent', 'any value': 'any value'}[wants] ?? wants;
}

// limitStep shows a bucket's level and the cost of the request.
function limitStep(l, e, rule) {
	// A masked key is not the key of a bucket, so it has no link.
	const key = h('p', {class: 'step-key'}, l.masked ? h('span', {class: 'key'}, show(l.key, 160)) :
		h('a', {class: 'key', href: `#/key?${new URLSearchParams({key: l.key, rule: rule.name})}`}, show(l.key, 160)));
	const head = rule.limits.length > 1 && h('span', {class: 'strong'}, show(l.name, 100), ' ');
	if (!l.asked) return h('div', {class: 'step-limit'}, h('p', null, head, h('span', {class: 'muted'}, `not checked; the cost would be ${tokens(l.cost)} of ${tokens(l.capacity)}`)), key);
	const [before, after, capacity, cost] = [l.before.remaining, l.after.remaining, l.capacity, l.cost].map(Number);
	const said = l.allowed ? `${tokens(before)} of ${tokens(capacity)} before, ${tokens(after)} after; cost ${tokens(cost)}` :
		`${tokens(before)} of ${tokens(capacity)} available; cost ${tokens(cost)}`;
	return h('div', {class: 'step-limit'}, h('p', null, head, said), levelBar({before, after, capacity, cost, allowed: l.allowed, said}),
		h('p', {class: 'small muted'}, timing(l, e)), key);
}

function timing(l, e) {
	const full = l.full_after === null ? 'It never becomes full.' : l.full_after > 0 ? `Full in ${dur(l.full_after)}.` : 'Full.';
	if (!l.allowed) return [l.retry_after === null ? 'Waiting does not help. ' : h('span', {class: 'denied'}, `Allowed in ${dur(l.retry_after)}, at ${time(l.passes_at ?? e.at)}. `), full];
	if (l.delay > 0) return `${l.stage} used: delayed by ${dur(l.delay)}. ${full}`;
	return l.stage ? `${l.stage} used: warning. ${full}` : full;
}

// levelBar draws a bucket as a bar: the rest, and the taken or missing tokens.
function levelBar({before, after, capacity, cost, allowed, said}) {
	const share = (n) => `${Math.max(0, Math.min(100, capacity > 0 ? 100 * n / capacity : 0)).toFixed(2)}%`;
	const stays = allowed ? Math.min(after, before) : before;
	const asks = allowed ? Math.max(0, before - stays) : Math.max(0, cost - before);
	return h('div', {class: `level-bar${allowed ? '' : ' level-short'}`, role: 'img', 'aria-label': said},
		h('span', {class: 'level-stays', style: {width: share(stays)}}), h('span', {class: 'level-asks', style: {width: share(asks)}}));
}
