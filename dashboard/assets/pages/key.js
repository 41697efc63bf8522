// SPDX-License-Identifier: Apache-2.0

import {h, keyNode, keyText, replace, show} from '../ui/dom.js';
import {get} from '../api.js';
import {keyActions} from '../actions.js';
import {followBucket} from '../bucketfeed.js';
import {bucketReadout} from '../bucketreadout.js';
import {decisionTable} from '../decisions.js';
import {keyHistory} from '../keyhistory.js';
import {Level} from '../level.js';
import {levelChart} from '../levelchart.js';
import {tank} from '../tank.js';

const SPANS = [30, 60, 120]; // s
const FRAME = 100; // ms between drawings: less than a pixel moves meanwhile
const STILL = 1000; // and where motion is not welcome

export default {
	title: 'Key',
	nav: 'keys',
	async mount(root, params, ctx) {
		const key = params.get('key') ?? '';
		if (key === '') {
			return askForKey(root, ctx);
		}
		const bucket = await get(`v1/bucket?${new URLSearchParams({key})}`).catch((err) => err);
		if (bucket instanceof Error) {
			replace(root, back(params), h('div', {class: 'empty card'}, h('h2', null, 'This bucket cannot be shown'),
				h('p', null, show(bucket.message, 400)), h('p', {class: 'mono'}, show(key, 200))));
			return undefined;
		}
		return keyPage(root, key, bucket, params);
	},
};

function back(params) {
	const rule = params.get('rule');
	return h('nav', {class: 'crumbs', 'aria-label': 'Breadcrumb'}, h('a', {href: '#/keys'}, 'Keys'), h('span', {'aria-hidden': 'true'}, '›'),
		rule && [h('a', {href: `#/keys?${new URLSearchParams({rule})}`}, show(rule, 60)), h('span', {'aria-hidden': 'true'}, '›')], h('span', {'aria-current': 'page'}, 'Key'));
}

// askForKey is the page without a key.
function askForKey(root, ctx) {
	const field = h('input', {class: 'input mono', id: 'key-field', required: true, autocomplete: 'off', spellcheck: 'false', placeholder: 'per-key:x-api-key=k1'});
	replace(root, h('form', {class: 'card stack-small', onsubmit: (e) => {
		e.preventDefault();
		ctx.navigate(`#/key?${new URLSearchParams({key: field.value.trim()})}`);
	}}, h('div', {class: 'field'}, h('label', {for: 'key-field'}, 'A bucket’s key, as an explanation shows it'), field),
	h('div', null, h('button', {class: 'btn btn-primary'}, 'Show'))));
	return undefined;
}

function keyPage(root, key, first, params) {
	let bucket = first;
	const level = new Level(Math.max(...SPANS) + 5);
	const chart = levelChart(level, {span: SPANS[1]});
	const vessel = tank();
	const readout = bucketReadout(level);
	const decisions = decisionTable();
	const history = keyHistory(first);
	const state = h('span', {class: 'badge live-state', role: 'status'});
	const skipped = h('p', {class: 'hint', hidden: true});
	const trouble = h('p', {class: 'notice notice-warn', role: 'status', hidden: true});
	const blocked = h('p', {class: 'hint', hidden: true}, 'While it is blocked the bucket is not asked, and so no decisions are drawn.');
	const facts = h('p', {class: 'key-facts'});
	let dropped = 0;
	let looks = '';

	const drawHead = () => {
		const {rule, limit, mode, words, shadow} = bucket;
		const of = ['override', 'blocked_by', 'allowed_by'].map((name) => bucket[name]?.id ?? bucket[name] ?? '');
		const now = JSON.stringify([rule, limit, mode, words, shadow, of]);
		if (now === looks) {
			return;
		}
		looks = now;
		replace(facts, h('a', {href: `#/rules/${encodeURIComponent(rule)}`}, `rule ${show(rule, 60)}`), limit !== rule && h('span', null, `limit ${show(limit, 60)}`),
			h('span', null, bucket.algorithm.replaceAll('_', ' ')), bucket.shards > 1 && h('span', null, `${bucket.shards} shards`),
			shadow && h('span', {class: 'badge badge-shadow'}, 'in shadow: denies nobody'), of[0] && h('span', {class: 'badge badge-level'}, 'another limit, by an override'),
			of[1] && h('span', {class: 'badge badge-denied'}, 'blocked'), of[2] && h('span', {class: 'badge badge-allowed'}, 'let through'),
			bucket.masked && h('span', {class: 'badge'}, 'masked'));
		blocked.hidden = !of[1];
		history.look();
	};

	const feed = followBucket(key, {
		onBucket(shown, look) {
			bucket = {...bucket, ...shown};
			level.look(look);
			drawHead();
		},
		onDecision(d) {
			level.decide(d);
			decisions.add(d);
			vessel.decided(d.kind);
		},
		onDropped(count) {
			dropped += count;
			skipped.hidden = false;
			skipped.textContent = `${dropped} more decisions are not drawn: there were too many at once.`;
		},
		onTrouble(text) {
			trouble.hidden = text === '';
			trouble.textContent = show(text, 300);
			if (text !== '' && feed.heard() !== null) {
				level.lose(feed.heard());
			}
		},
		onState(now, problem) {
			if (feed?.heard() !== undefined && feed.heard() !== null) {
				level.lose(feed.heard()); // also after the page was hidden
			}
			state.className = `badge live-state ${now === 'live' ? 'badge-ok' : 'badge-warn'}`;
			state.textContent = now === 'live' ? 'live' : now === 'ended' ? 'ended' : 'reconnecting';
			if (now === 'ended' && problem) {
				trouble.hidden = false;
				trouble.textContent = show(problem.message, 300);
			}
		},
	});
	// What another limit is said by is that of this one. A queue is within the capacity.
	const target = () => ({...bucket, tokens: bucket.rate.tokens, per: bucket.rate.per, refill: / every /.test(bucket.words) ? 'interval' : ''});

	const spans = h('div', {class: 'segmented', role: 'group', 'aria-label': 'How much time is drawn'}, SPANS.map((s) => h('button', {
		type: 'button', 'aria-pressed': String(s === SPANS[1]), onclick: (e) => {
			chart.span(s);
			for (const b of spans.children) {
				b.setAttribute('aria-pressed', String(b === e.currentTarget));
			}
		},
	}, s % 60 === 0 ? `${s / 60} min` : `${s} s`)));
	replace(root, h('div', {class: 'stack'}, back(params),
		h('header', {class: 'key-head'}, h('h2', {class: 'key-title', 'aria-label': `Key ${keyText(first.parts)}`}, keyNode(first.parts)), facts),
		trouble,
		h('div', {class: 'key-grid'},
			h('section', {class: 'card key-live', 'aria-label': 'Level'}, h('div', {class: 'card-head'}, h('h2', null, 'Level'), state, spans), chart.node, legend(), blocked, skipped),
			h('section', {class: 'card key-now', 'aria-label': 'Now'}, vessel.node, readout.node),
			h('section', {class: 'card key-acts', 'aria-label': 'Actions'}, h('div', {class: 'card-head'}, h('h2', null, 'Actions')), keyActions(target, () => history.look())),
			h('section', {class: 'card card-flush key-decisions', 'aria-label': 'Latest decisions'}, h('div', {class: 'card-head'}, h('h2', null, 'Latest decisions')), decisions.node),
			h('section', {class: 'card key-history', 'aria-label': 'Overrides and what was done'}, history.node))));
	drawHead();

	const stop = animate((time) => {
		const t = feed.now();
		chart.draw(t);
		decisions.draw(time);
		const now = readout.draw(t, bucket);
		if (now) {
			vessel.update(now.level, now.capacity, now.level < now.capacity && now.filling);
			chart.summary(now.sentence);
		}
	});
	return () => {
		stop();
		feed.close();
		chart.destroy();
		history.close();
	};
}

function legend() {
	const entry = (look, sign, text) => h('li', null, h('span', {class: `legend-sign ${look}`, 'aria-hidden': 'true'}, sign), text);
	return h('ul', {class: 'level-legend plain'}, entry('level', '━', 'level'), entry('level', '┅', 'what comes if nobody asks'), entry('muted', '┄', 'capacity'),
		entry('allowed', '╹', 'allowed, by cost'), entry('denied', '✕', 'denied'), entry('shadow', '◆', 'would be denied'));
}

// animate calls f about ten times a second while the page can be seen.
function animate(f) {
	const still = matchMedia('(prefers-reduced-motion: reduce)');
	let request = 0;
	let timer = 0;
	const frame = (time) => {
		f(time);
		// A timer between frames: at 60 frames a second most of them would find nothing
		// to do, and still wake the machine.
		timer = setTimeout(() => {
			request = requestAnimationFrame(frame);
		}, (still.matches ? STILL : FRAME) - 16);
	};
	request = requestAnimationFrame(frame);
	return () => {
		clearTimeout(timer);
		cancelAnimationFrame(request);
	};
}
