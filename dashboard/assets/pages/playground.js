// SPDX-License-Identifier: Apache-2.0
//
// The playground page: limits side by side on the same traffic. The engine of the server decides, in virtual time.

import {h, replace, show} from '../ui/dom.js';
import {get, post} from '../shell/api.js';
import {copyButton} from '../shell/copy.js';
import {toast} from '../shell/dialog.js';
import {arrivalStrip, legend} from '../playground/chart.js';
import {showMistakes} from '../playground/controls.js';
import {laneForm, trafficForm, trafficWords} from '../playground/forms.js';
import {laneCard} from '../playground/lane.js';
import {player} from '../playground/player.js';
import {presetPicker} from '../playground/presets.js';
import {runOf} from '../playground/run.js';
import {copyOf, inputOf, laneDefaults, mistakesOf, queryOf, readQuery, stateOf} from '../playground/state.js';

const pauseBeforeAsking = 150; // milliseconds

class Playground {
	constructor(root, offered) {
		this.offered = offered;
		this.state = null;
		this.result = null;
		this.cards = [];
		this.timer = 0;
		this.asking = null;
		this.wrote = null; // the fragment that the page wrote last
		this.build(root);
	}

	build(root) {
		this.picker = presetPicker(this.offered.presets, (preset) => this.begin(stateOf(preset.input), preset));
		this.trouble = h('div', {class: 'notice notice-bad', role: 'alert', hidden: true});
		this.time = player({onMove: (t, from, playing) => this.move(t, from, playing)});
		this.strip = arrivalStrip({onSeek: (t) => this.time.seek(t)});
		this.time.actions.append(h('button', {type: 'button', class: 'btn', title: 'Send a request at the current time', dataset: {key: 'send'}, onclick: () => this.send()}, 'Send a request'));
		this.traffic = h('div', {class: 'play-traffic'});
		this.marks = legend();
		this.comes = h('span', {class: 'play-comes muted'});
		this.edit = h('details', {class: 'play-edit'}, h('summary', null, 'Change the traffic'), this.traffic);
		this.lanes = h('div', {class: 'play-lanes'});
		this.add = h('button', {type: 'button', class: 'btn', dataset: {key: 'add-lane'}, onclick: () => this.addLane()}, 'Add another limit');
		this.spoken = h('p', {class: 'visually-hidden', 'aria-live': 'polite'});
		root.append(h('div', {class: 'stack play'},
			h('div', {class: 'play-top'}, this.picker.node, copyButton(() => location.href, 'Copy link')), this.trouble, this.time.node,
			h('section', {class: 'card play-traffic-card', 'aria-label': 'Traffic'}, h('div', {class: 'card-head'}, h('h2', null, 'Traffic'), this.comes, this.marks.node), this.strip.node,
				this.edit),
			this.lanes, h('div', {class: 'row'}, this.add), this.spoken));
	}

	// begin shows another state, at its end.
	begin(state, preset) {
		this.state = copyOf(state);
		this.time.stop();
		this.time.seek(0);
		this.picker.show(preset);
		this.rebuild();
		for (const card of this.cards) card.edit.open = this.cards.length === 1 && matchMedia('(min-width: 1081px)').matches;
		this.ask();
	}

	changed(rebuild) {
		if (rebuild) this.rebuild();
		clearTimeout(this.timer);
		this.timer = setTimeout(() => this.ask(), pauseBeforeAsking);
	}

	// rebuild replaces all form fields and keeps the focus.
	rebuild() {
		const {key} = document.activeElement?.dataset ?? {};
		const changed = (again) => this.changed(again);
		while (this.cards.length > this.state.lanes.length) this.cards.pop().node.remove();
		while (this.cards.length < this.state.lanes.length) this.addCard(this.cards.length);
		this.cards.forEach((card, i) => {
			replace(card.form, laneForm(this.state, i, changed));
			card.remove.hidden = this.state.lanes.length === 1;
		});
		this.lanes.classList.toggle('play-many', this.cards.length > 1);
		replace(this.traffic, trafficForm(this.state, this.offered.bounds, changed));
		this.add.hidden = this.state.lanes.length >= this.offered.bounds.lanes;
		if (key) [...document.querySelectorAll('[data-key]')].find((e) => e.dataset.key === key)?.focus({preventScroll: true});
	}

	addCard(number) {
		const card = laneCard({number, onSeek: (t) => this.time.seek(t), exported: () => this.exported(number), onRemove: () => {
			this.state.lanes.splice(number, 1);
			this.changed(true);
			this.add.focus();
		}});
		this.cards.push(card);
		this.lanes.append(card.node);
	}

	addLane() {
		const last = this.state.lanes.at(-1);
		const algorithm = last.algorithm === 'token_bucket' ? 'leaky_bucket' : 'token_bucket';
		this.state.lanes.push(laneDefaults(algorithm, last));
		this.changed(true);
		this.cards.at(-1).edit.open = true;
		this.cards.at(-1).form.querySelector('select')?.focus();
	}

	// send adds a request at the current time.
	send() {
		if (!this.result) return;
		if (this.state.hand.length >= this.offered.bounds.hand) {
			toast({text: `You can send at most ${this.offered.bounds.hand} requests by hand.`});
			return;
		}
		const at = Math.min(this.time.at(), this.result.seconds - 1e-6);
		this.state.hand.push(String(Number(Math.max(0, at).toFixed(6))));
		this.rebuild();
		this.ask();
	}

	async ask() {
		clearTimeout(this.timer);
		this.asking?.abort();
		const wrong = mistakesOf(this.state);
		if (wrong.length > 0) {
			this.note(wrong);
			return;
		}
		const asked = new AbortController();
		this.asking = asked;
		try {
			const result = await post('v1/play', inputOf(this.state), {signal: asked.signal});
			if (asked.signal.aborted) return;
			this.note([]);
			this.draw(result);
			await this.write();
		} catch (e) {
			if (e.name === 'AbortError' || asked.signal.aborted) return;
			this.note(e.mistakes?.length > 0 ? e.mistakes : [{pointer: '', detail: e.message}]);
		}
	}

	async exported(number) {
		return (await post('v1/play', {...inputOf(this.state), export: true})).lanes[number];
	}

	draw(result) {
		this.result = result;
		const runs = result.lanes.map((lane) => runOf(lane, result.seconds));
		runs.forEach((run, i) => this.cards[i].update(run));
		this.strip.update(runs[0]);
		this.marks.waits(runs.some((r) => r.lane.totals.delayed > 0));
		this.comes.textContent = trafficWords(this.state);
		this.time.length(result.seconds);
		this.spoken.textContent = runs.map((r, i) => `Limit ${'ABCD'[i]}: ${r.lane.totals.allowed} of ${r.lane.totals.sent} allowed.`).join(' ');
	}

	move(t, from, playing) {
		this.strip.cursor(t);
		for (const card of this.cards) card.cursor(t, from, playing);
	}

	// note shows errors next to their fields. The last result stays visible, but pale.
	note(mistakes) {
		const left = [];
		this.cards.forEach((card, i) => {
			const mine = mistakes.filter((m) => `${m.pointer}/`.startsWith(`/lanes/${i}/`));
			card.note(showMistakes(card.form, mine));
		});
		left.push(...showMistakes(this.traffic, mistakes.filter((m) => m.pointer.startsWith('/traffic'))), ...mistakes.filter((m) => !/^\/(lanes\/\d|traffic)/.test(m.pointer)));
		if (this.traffic.querySelector('.mistake:not([hidden])')) this.edit.open = true;
		this.trouble.hidden = left.length === 0;
		replace(this.trouble, left.map((m) => h('p', null, show(m.hint ? `${m.detail}; ${m.hint}` : m.detail, 300))));
		this.lanes.classList.toggle('play-stale', mistakes.length > 0);
	}

	// write updates the address, so that users can share it.
	async write() {
		try {
			const query = await queryOf(this.state, this.offered.presets);
			const id = /^preset=(.*)$/.exec(query)?.[1];
			this.picker.show(this.offered.presets.find((p) => p.id === id) ?? null);
			this.wrote = `#/playground?${query}`;
			if (location.hash !== this.wrote && /^#\/playground\b/.test(location.hash)) history.replaceState(null, '', this.wrote);
		} catch (e) {
			this.trouble.hidden = false;
			replace(this.trouble, e.message);
		}
	}

	async read(params) {
		const {state, preset, problem} = await readQuery(params, this.offered);
		this.begin(state, preset);
		if (problem) toast({text: problem, kind: 'bad'});
	}

	end() {
		this.time.stop();
		clearTimeout(this.timer);
		this.asking?.abort();
	}
}

let shown = null;

export default {
	title: 'Playground',
	nav: 'playground',
	async mount(root, params) {
		shown = new Playground(root, await get('v1/play/presets'));
		await shown.read(params);
		const mine = shown;
		return () => {
			mine.end();
			if (shown === mine) shown = null;
		};
	},
	refresh(params) {
		if (shown && location.hash !== shown.wrote) shown.read(params);
	},
};
