// SPDX-License-Identifier: Apache-2.0
//
// The server's event stream, shared by all pages.
//
//   live.on(name, f)     'state' (f(state)), 'samples' (f(samples)), 'connection' (f(connection)), 'instance'
//                        (f(instance), after a restart); returns a function that stops it
//   live.state           the last state event, or null
//   live.samples         [[t, allowed, denied, shadow, degraded, d50, d95, d99, s50, s95, s99], …], oldest first
//   live.connection      'connecting', 'live', 'reconnecting' or 'ended'
//   live.heard           the time of the last event, as a Date, or null
//   live.restarts        [{t, instance}]: the first event of each new server process, in Unix seconds
//   live.rules(seconds)  {name: [allowed, denied, shadow, near, degraded]}, sums of the last seconds, at most a minute
//   live.ruleSeconds(seconds) the seconds that these sums cover: fewer after a restart
//   live.sums(seconds)   {allowed, denied, shadow, degraded, seconds} of the last seconds
//   live.columns(seconds) {x, values: [10 arrays], range: [from, to]} for charts; null for missing values
//   live.start(), live.stop()

import {get, stream} from './api.js';

const kept = 900; // samples
const ruleMemory = 60; // seconds
const hole = 3; // seconds without a sample that count as a gap; fewer are a late sample
const trafficEvery = 4000; // milliseconds, until a minute of rule events has arrived

class Live {
	constructor() {
		Object.assign(this, {state: null, samples: [], connection: 'connecting', heard: null, restarts: [],
			listeners: {}, seconds: [], summed: new Map(), since: 0, traffic: null, instance: '', open: null});
	}

	on(name, f) {
		(this.listeners[name] ??= new Set()).add(f);
		return () => this.listeners[name].delete(f);
	}

	tell(name, value) {
		for (const f of [...(this.listeners[name] ?? [])]) f(value);
	}

	start() {
		this.open ??= stream('v1/traffic/stream', {onEvent: (name, data) => this.event(name, data), onState: (s, p) => this.connected(s, p)});
	}

	stop() {
		this.open?.close();
		this.open = null;
		clearInterval(this.asking);
	}

	connected(state, problem) {
		if (state === 'ended') this.open = null;
		if (state === 'live') {
			this.since = 0;
			this.traffic = null;
			this.askTraffic();
		}
		this.connection = state;
		this.problem = problem ?? null;
		this.tell('connection', state);
	}

	event(name, data) {
		this.heard = new Date();
		if (name === 'state') {
			this.known(data.instance, Date.parse(data.at) / 1000);
			this.state = data;
			this.tell('state', data);
		} else if (name === 'samples') {
			this.add(data);
			this.tell('samples', this.samples);
		}
	}

	known(instance, at) {
		if (this.instance && instance !== this.instance) {
			this.restarts.push({t: at, instance});
			this.restarts = this.restarts.slice(-20);
			this.tell('instance', instance);
		}
		this.instance = instance;
	}

	add({samples, rules}) {
		for (const s of samples) {
			while (this.samples.at(-1)?.[0] >= s[0]) this.samples.pop(); // repeated, or the server's clock was set back
			this.samples.push(s);
		}
		if (this.samples.length > kept) this.samples.splice(0, this.samples.length - kept);
		const t = samples.at(-1)?.[0];
		if (t === undefined) return;
		this.since = Math.min(this.since || t, t);
		while (this.seconds.at(-1)?.[0] >= t) this.seconds.pop();
		this.seconds.push([t, new Map((rules ?? []).map(([name, ...counts]) => [name, counts]))]);
		this.summed.clear();
		while (this.seconds[0][0] <= t - ruleMemory) this.seconds.shift();
	}

	// Until a minute of events has arrived, the counts are the server's sums plus the events since that request.
	async askTraffic() {
		clearInterval(this.asking);
		const heardAll = () => this.since && (this.samples.at(-1)?.[0] ?? 0) - this.since >= ruleMemory;
		const next = async () => {
			if (heardAll() || this.connection === 'ended') {
				clearInterval(this.asking);
				this.traffic = null;
				this.summed.clear();
				return;
			}
			if (document.hidden) return;
			try {
				const {rules} = await get(`v1/traffic?window=${ruleMemory}s`);
				this.traffic = {rules, at: this.since ? this.samples.at(-1)[0] : Infinity};
				this.summed.clear();
				this.tell('samples', this.samples);
			} catch {
				// the stream reports the error
			}
		};
		this.asking = setInterval(next, trafficEvery);
		await next();
	}

	rules(seconds = ruleMemory) {
		if (this.summed.has(seconds)) return this.summed.get(seconds);
		const told = seconds >= ruleMemory ? this.traffic : null;
		const from = told?.at ?? (this.samples.at(-1)?.[0] ?? 0) - seconds;
		const sums = Object.fromEntries(Object.entries(told?.rules ?? {}).map(([name, counts]) => [name, [...counts]]));
		this.summed.set(seconds, sums); // cached until the next second, because a page asks for each of many rules
		for (const [t, rules] of this.seconds) {
			if (t <= from) continue;
			for (const [name, counts] of rules) {
				const sum = Object.hasOwn(sums, name) ? sums[name] : Object.defineProperty(sums, name, {value: [0, 0, 0, 0, 0], enumerable: true})[name];
				counts.forEach((n, i) => {
					sum[i] += n;
				});
			}
		}
		return sums;
	}

	ruleSeconds(seconds = ruleMemory) {
		const began = Math.floor(Date.parse(this.state?.started) / 1000);
		const lived = (this.samples.at(-1)?.[0] ?? 0) - began;
		return lived >= 0 ? Math.max(1, Math.min(seconds, lived + 1)) : seconds;
	}

	sums(seconds) {
		const to = this.samples.at(-1)?.[0] ?? 0;
		const sum = {allowed: 0, denied: 0, shadow: 0, degraded: 0, seconds: 0};
		for (let i = this.samples.length - 1; i >= 0 && this.samples[i][0] > to - seconds; i--) {
			const [, allowed, denied, shadow, degraded] = this.samples[i];
			sum.allowed += allowed;
			sum.denied += denied;
			sum.shadow += shadow;
			sum.degraded += degraded;
			sum.seconds++;
		}
		return sum;
	}

	columns(seconds) {
		const to = this.samples.at(-1)?.[0] ?? Math.floor(Date.now() / 1000);
		const x = [];
		const values = Array.from({length: 10}, () => []);
		const put = (t, row) => {
			x.push(t);
			values.forEach((column, i) => column.push(row ? row[i + 1] : null));
		};
		for (const s of this.samples) {
			if (s[0] <= to - seconds) continue;
			if (x.length > 0 && s[0] - x.at(-1) > hole) put(x.at(-1) + 1, null);
			put(s[0], s);
		}
		return {x, values, range: [to - seconds, to]};
	}
}

export const live = new Live();
