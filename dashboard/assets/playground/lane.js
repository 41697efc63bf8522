// SPDX-License-Identifier: Apache-2.0
//
// The card of one limit: its form, its bucket, its chart, and an explanation in sentences.
//
//   laneCard({number, onSeek(t), onRemove, exported() → the lane with its trace})
//     → {node, form (the place of the fields), edit (the details element around it), update(run), cursor(t, from, playing),
//        note(errors)}

import {h, replace, show} from '../ui/dom.js';
import {dur, pct, tokens} from '../ui/format.js';
import {copyButton} from '../shell/copy.js';
import {toast} from '../shell/dialog.js';
import {laneChart} from './chart.js';
import {bucketPicture} from './tank.js';
import {exact} from './run.js';
import {algorithmOf} from '../shell/vocabulary.js';
import {requestTable} from './table.js';

const letters = ['A', 'B', 'C', 'D'];
const mostDrops = 8; // per frame

export function laneCard({number, onSeek, onRemove, exported}) {
	const letter = letters[number];
	const title = h('h2', {class: 'play-title'}, 'Algorithm');
	const limit = h('span', {class: 'muted play-limit'});
	const form = h('div');
	const edit = h('details', {class: 'play-form'}, h('summary', null, 'Change the limit'), form);
	const wrong = h('div', {class: 'notice notice-bad', role: 'alert', hidden: true});
	const picture = bucketPicture();
	const amount = h('span', {class: 'play-amount'});
	const of = h('span', {class: 'muted'});
	const counts = h('p', {class: 'play-counts'});
	const chart = laneChart({label: `Limit ${letter}`, onSeek, onHover: (t, within) => hover(t, within)});
	const readout = h('p', {class: 'play-readout'});
	const totals = h('div', {class: 'play-totals'});
	const words = h('div', {class: 'play-words'});
	const table = requestTable(`Requests of limit ${letter}`);
	const policy = policyPart(() => run, exported);
	const remove = h('button', {type: 'button', class: 'btn btn-ghost btn-small play-away', 'aria-label': `Remove limit ${letter}`, dataset: {key: `remove-lane-${number}`}, onclick: onRemove}, 'Remove');
	const node = h('section', {class: `card play-lane play-lane-${letter.toLowerCase()}`, 'aria-label': `Limit ${letter}`},
		h('div', {class: 'card-head'}, h('span', {class: 'play-letter', 'aria-hidden': 'true'}, letter), title, limit, remove), wrong,
		h('div', {class: 'play-body'}, edit,
			h('div', {class: 'play-vessel'}, picture.node, h('div', {class: 'play-level'}, amount, of), counts),
			h('div', {class: 'play-picture'}, totals, chart.node, readout)),
		words, h('div', {class: 'play-more'}, table.node, policy));
	let run = null;
	let at = 0;

	// hover describes the requests under the mouse until it leaves.
	function hover(t, within) {
		if (!run) return;
		const {n, list} = t === null ? {list: []} : run.near(t, within);
		if (list.length === 0) {
			cursor(at, at, false);
			return;
		}
		readout.textContent = list.length === 1 ? requestWords(list[0], n) : instantWords(list);
		chart.waits(list.findLast((d) => d.kind === 'denied') ?? null);
	}

	function cursor(t, from, playing) {
		at = t;
		if (!run) return;
		const level = run.levelAt(t);
		const so = run.until(t);
		picture.update(level, run.capacity);
		if (playing) animateDecisions(picture, run, from, t);
		const shown = Math.abs(level - Math.round(level)) < 0.0005 ? Math.round(level) : Number(level.toFixed(run.capacity < 100 ? 2 : 1));
		amount.textContent = tokens(Math.max(shown, 0));
		of.textContent = ` of ${tokens(run.capacity)}${shown < 0 ? `, ${tokens(-shown)} waiting` : ''}`;
		replace(counts, h('span', {class: 'allowed'}, `✓ ${tokens(so.allowed)}`), ' ', h('span', {class: 'denied'}, `✕ ${tokens(so.denied)}`));
		const denied = so.last?.kind === 'denied' && t - so.last.at <= Math.max(so.last.retry, run.seconds / 100) ? so.last : null;
		chart.cursor(t, denied);
		readout.textContent = readoutOf(run, t, so, level);
	}

	return {
		node, form, edit, cursor, remove,
		update(next) {
			run = next;
			const {lane} = run;
			title.textContent = show(lane.name || algorithmOf(lane.algorithm).label, 60);
			limit.textContent = lane.limit;
			chart.update(run);
			replace(totals, totalsOf(lane));
			replace(words, badges(lane), lane.words.map((w, i) => h('p', {class: i ? 'muted' : ''}, w)), lane.warnings.map((w) => h('p', {class: 'degraded'}, w)));
			table.update(run);
			policy.update(lane);
		},
		note(errors) {
			if (form.querySelector('.mistake:not([hidden])')) edit.open = true;
			wrong.hidden = errors.length === 0;
			replace(wrong, errors.map((m) => h('p', null, show(m.hint ? `${m.detail}; ${m.hint}` : m.detail, 300))));
		},
	};
}

// animateDecisions shows the decisions of a time span, or a sample of them if there are many.
function animateDecisions(picture, run, from, to) {
	const first = run.until(from).n;
	const last = run.until(to).n;
	const every = Math.max(1, Math.ceil((last - first) / mostDrops));
	for (let i = first; i < last; i += every) picture.decided(run.decisions[i].kind);
}

function totalsOf(lane) {
	const t = lane.totals;
	const at = t.allowed - t.delayed;
	return [
		h('span', {class: 'play-share'}, h('strong', null, `${tokens(t.allowed)} of ${tokens(t.sent)}`), ' allowed'),
		h('span', {class: 'play-stack', role: 'img', 'aria-label': `${pct(t.allowed, t.sent)} allowed, ${pct(t.denied, t.sent)} denied`},
			[['allowed', at], ['near', t.delayed], ['denied', t.denied]].map(([color, n]) => n > 0 && h('span', {style: {'--c': `var(--chart-${color})`, 'flex-grow': String(n)}}))),
		h('span', {class: 'muted nowrap'}, t.sent > 0 ? pct(t.allowed, t.sent) : 'none sent'),
	];
}

function badges({totals: t}) {
	const all = [t.longest_wait > 0 && h('span', {class: 'badge badge-near'}, `waits up to ${dur(t.longest_wait)}`),
		t.longest_retry > 0 && h('span', {class: 'badge badge-denied'}, `retry after up to ${dur(t.longest_retry)}`)].filter(Boolean);
	return all.length > 0 && h('p', {class: 'row'}, all);
}

// readoutOf describes the last request at the cursor.
function readoutOf(run, t, so, level) {
	const d = so.last;
	if (!d) return `${dur(Number(t.toFixed(6)))}: no requests yet.`;
	const now = tokens(Number(level.toFixed(3)));
	const changed = d.kind === 'allowed' && t > d.at && now !== tokens(d.level);
	return requestWords(d, so.n) + (changed ? ` Now ${now} left.` : '');
}

function requestWords(d, n) {
	const who = `Request ${tokens(n)}${d.attempt > 1 ? `, attempt ${d.attempt} of client ${d.client + 1},` : ''} at ${exact(d.at)}`;
	if (d.kind === 'denied') return d.retry === Infinity ? `${who}: denied, no retry can succeed.` : `${who}: denied. Retry after ${exact(d.retry)}.`;
	return d.kind === 'waits' ? `${who}: allowed, starts after ${exact(d.wait)}.` : `${who}: allowed, ${tokens(d.level)} left.`;
}

function instantWords(list) {
	const of = (kind) => list.filter((d) => d.kind === kind);
	const retry = Math.max(...of('denied').map((d) => d.retry));
	const wait = Math.max(...of('waits').map((d) => d.wait));
	return `${tokens(list.length)} requests at ${exact(list[0].at)}: ${[of('allowed').length > 0 && `${tokens(of('allowed').length)} allowed`,
		of('waits').length > 0 && `${tokens(of('waits').length)} wait up to ${exact(wait)}`,
		of('denied').length > 0 && `${tokens(of('denied').length)} denied, ${retry === Infinity ? 'forever' : `retry after ${exact(retry)}`}`].filter(Boolean).join(', ')}.`;
}

// policyPart shows the policy and offers downloads.
function policyPart(current, exported) {
	const code = h('code', {class: 'code'});
	const files = (lane) => ({policy: `${lane.rule}.json`, trace: `${lane.rule}.jsonl`});
	const saving = (what, type) => async () => {
		try {
			const lane = await exported();
			save(files(lane)[what], lane[what], type);
		} catch (e) {
			toast({text: e.message, kind: 'bad'});
		}
	};
	const node = h('details', {class: 'play-policy'}, h('summary', null, 'Policy and trace'),
		h('div', {class: 'stack-small'}, h('div', {class: 'row'},
			h('button', {type: 'button', class: 'btn btn-small', onclick: saving('policy', 'application/json')}, 'Download policy'),
			h('button', {type: 'button', class: 'btn btn-small', onclick: saving('trace', 'application/x-ndjson')}, 'Download trace'),
			copyButton(() => {
				const names = files(current().lane);
				return `mete replay --policy ${names.policy} ${names.trace}`;
			}, 'Copy the replay command')), code,
		h('p', {class: 'hint'}, 'Use the policy with mete serve --policy. mete replay decides the trace exactly as shown here.')));
	node.update = (lane) => {
		code.textContent = lane.policy;
	};
	return node;
}

function save(name, text, type) {
	const url = URL.createObjectURL(new Blob([text], {type}));
	const link = h('a', {href: url, download: name});
	document.body.append(link);
	link.click();
	link.remove();
	setTimeout(() => URL.revokeObjectURL(url), 10000);
}

