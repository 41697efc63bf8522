// SPDX-License-Identifier: Apache-2.0

import {h, keyText, replace, show} from '../ui/dom.js';
import {dateTime} from '../ui/format.js';
import {keyActions} from '../overrides/actions.js';
import {followBucket} from './feed.js';
import {bucketReadout} from './readout.js';
import {decisionTable} from './decisions.js';
import {keyHistory} from './history.js';
import {keyParts} from '../keys/table.js';
import {Level} from './level.js';
import {levelChart} from './chart.js';
import {slotTable} from './slots.js';
import {tank} from './tank.js';

const SPANS = [30, 60, 120]; // s
const FRAME = 100; // ms between frames, in which the curve moves less than a pixel
const STILL = 1000; // ms between frames with reduced motion
const SPOKEN = 5000; // ms between updates of the description for screen readers

// A KeyView shows the live bucket of a key: its level, decisions, actions and history. bucket is the
// response of v1/bucket.
export class KeyView {
	constructor(key, bucket) {
		this.bucket = bucket;
		this.level = new Level(Math.max(...SPANS) + 5);
		this.chart = levelChart(this.level, {span: SPANS[1]});
		this.tank = tank();
		this.readout = bucketReadout(this.level);
		this.slots = slotTable();
		this.slots.update(bucket);
		this.decisions = decisionTable();
		this.history = keyHistory(bucket);
		this.facts = h('p', {class: 'key-facts'});
		this.state = h('span', {class: 'badge live-state', role: 'status'}, 'connecting');
		this.trouble = h('p', {class: 'notice notice-warn level-trouble', role: 'status', hidden: true});
		this.note = h('p', {class: 'hint level-note'});
		this.dropped = 0;
		this.connected = false;
		this.connection = 'connecting';
		this.said = -SPOKEN;
		this.node = this.layout();
		this.head();
		const since = Date.parse(bucket.at) / 1000;
		this.level.capacity = bucket.capacity;
		this.level.tell({t: since, levels: [[0, bucket.remaining]], retry: bucket.retry_after, full: bucket.full_after});
		this.feed = this.follow(key, since);
		this.draw(performance.now()); // reserves the space of the known parts
		this.stop = animate((time) => this.draw(time));
	}

	close() {
		this.stop();
		this.feed.close();
		this.chart.destroy();
		this.history.close();
	}

	layout() {
		const card = (look, title, ...children) => h('section', {class: `card ${look}`, 'aria-label': title}, h('div', {class: 'card-head'}, h('h2', null, title)), children);
		const live = card('key-live', 'Level', this.chart.node, legend(), this.note);
		live.firstChild.append(this.state, spanButtons(this.chart));
		this.chart.node.append(this.trouble); // over the chart, which is paused meanwhile
		return h('div', {class: 'stack'},
			h('header', {class: 'key-head'}, h('h2', {class: 'key-title', 'aria-label': `Key ${keyText(this.bucket.parts)}`}, keyParts(this.bucket)), this.facts),
			h('div', {class: 'key-grid'}, live,
				h('section', {class: 'card key-now', 'aria-label': 'Now'}, this.tank.node, this.readout.node),
				card('key-acts', 'Actions', keyActions(() => this.target(), () => this.history.look())),
				h('section', {class: 'card key-history', 'aria-label': 'Overrides and recent changes'}, this.history.node),
				h('div', {class: 'key-decisions stack'}, this.slots.node, card('card-flush', 'Latest decisions', this.decisions.node)))); // last: it grows
	}

	// target returns the target of actions, with the rate of its limit.
	target() {
		const {bucket} = this;
		return {...bucket, tokens: bucket.rate.tokens, per: bucket.rate.per};
	}

	// head updates the header if it has changed.
	head() {
		const {rule, limit, mode, algorithm, words, shadow, shards, masked} = this.bucket;
		const [other, block, allow] = ['override', 'blocked_by', 'allowed_by'].map((name) => this.bucket[name]?.id ?? '');
		const punished = penaltyWords(this.bucket);
		const now = JSON.stringify([rule, limit, mode, words, shadow, other, block, allow, punished]);
		if (now === this.shown) {
			return;
		}
		this.shown = now;
		replace(this.facts, h('a', {href: `#/rules/${encodeURIComponent(rule)}`}, `rule ${show(rule, 64)}`), limit !== rule && h('span', null, `limit ${show(limit, 64)}`),
			h('span', null, algorithm.replaceAll('_', ' ')), shards > 1 && h('span', null, `${shards} shards`),
			shadow && h('span', {class: 'badge badge-shadow'}, 'in shadow: denies nothing'), other && h('span', {class: 'badge badge-level'}, 'limit changed by an override'),
			punished && h('span', {class: 'badge badge-denied'}, punished),
			block && h('span', {class: 'badge badge-denied'}, 'blocked'), allow && h('span', {class: 'badge badge-allowed'}, 'let through'),
			masked && h('span', {class: 'badge'}, 'masked'),
			!masked && this.bucket.parts?.some((p) => p.hashed) && h('span', null, '~ marks the hash of a long value or a possible secret'));
		this.blocked = block !== '';
		this.remark();
		this.history.look();
	}

	// remark updates the note below the chart.
	remark() {
		const more = this.dropped > 0 ? `${this.dropped} more decisions are not drawn, because there were too many at once.` : '';
		const text = this.blocked ? 'While the key is blocked, its bucket is not used and no decisions are drawn.' : more;
		if (this.note.textContent !== text) {
			this.note.textContent = text;
		}
	}

	follow(key, since) {
		return followBucket(key, since, {
			onBucket: (shown) => {
				this.bucket = shown;
				this.level.capacity = shown.capacity;
				this.slots.update(shown);
				this.head();
			},
			onLevel: (event) => this.level.tell(event),
			onDecision: (d) => {
				this.level.decide(d);
				this.decisions.add(d);
				this.tank.decided(d.kind);
			},
			onDropped: (count) => {
				this.dropped += count;
				this.remark();
			},
			onTrouble: (text) => this.showTrouble(text),
			onState: (state, problem) => {
				if (this.connected || state !== 'live') {
					this.lose(); // also after the page was hidden
				}
				this.connected = true;
				this.connection = state;
				if (state === 'ended' && problem) {
					this.showTrouble(problem.message);
				}
				this.mark();
			},
		});
	}

	// showTrouble shows why the bucket is unavailable; '' hides the message.
	showTrouble(text) {
		this.trouble.hidden = text === '';
		this.trouble.textContent = show(text.charAt(0).toUpperCase() + text.slice(1), 300);
		if (text !== '') {
			this.lose();
		}
		this.mark();
	}

	// mark shows whether the chart is up to date.
	mark() {
		const state = this.connection === 'live' && !this.trouble.hidden ? 'waiting' : this.connection;
		if (this.state.textContent !== state) {
			this.state.className = `badge live-state ${state === 'live' ? 'badge-ok' : 'badge-warn'}`;
			this.state.textContent = state;
		}
	}

	lose() {
		const heard = this.feed.heard();
		if (heard !== null) {
			this.level.lose(heard);
		}
	}

	draw(time) {
		const t = this.feed.now();
		this.chart.draw(t);
		this.decisions.draw(time);
		const now = this.readout.draw(t, this.bucket);
		if (now) {
			this.tank.update(now.level, now.capacity, now.inflow);
			this.tank.node.classList.toggle('stale', !now.live);
			if (time - this.said >= SPOKEN) {
				this.said = time;
				this.chart.summary(now.sentence);
			}
		}
	}
}

// penaltyWords describes a running penalty, or returns ''.
function penaltyWords({at, penalty}) {
	return penalty ? `under a penalty until ${dateTime(Math.ceil(Date.parse(at) / 1000 + penalty.left) * 1000)}, level ${penalty.level}` : '';
}

function spanButtons(chart) {
	const node = h('div', {class: 'segmented', role: 'group', 'aria-label': 'Time shown'}, SPANS.map((s) => h('button', {
		type: 'button', 'aria-pressed': String(s === SPANS[1]), onclick: (e) => {
			chart.span(s);
			for (const b of node.children) {
				b.setAttribute('aria-pressed', String(b === e.currentTarget));
			}
		},
	}, s % 60 === 0 ? `${s / 60} min` : `${s} s`)));
	return node;
}

function legend() {
	const entry = (look, sign, text) => h('li', null, h('span', {class: `legend-sign ${look}`, 'aria-hidden': 'true'}, sign), text);
	return h('ul', {class: 'level-legend plain'}, entry('level', '━', 'level'), entry('level', '┅', 'future without requests'), entry('muted', '┄', 'capacity'),
		entry('allowed', '╹', 'allowed, by cost'), entry('denied', '✕', 'denied'), entry('shadow', '◆', 'would be denied'), entry('muted', '○', 'denied by another limit'));
}

// animate calls f about ten times per second while the page is visible.
function animate(f) {
	const still = matchMedia('(prefers-reduced-motion: reduce)');
	let request = 0;
	let timer = 0;
	const frame = (time) => {
		f(time);
		// A timer between frames saves power: at 60 frames per second most would have nothing to do.
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
