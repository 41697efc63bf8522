// SPDX-License-Identifier: Apache-2.0
//
// Server-sent events over fetch, because an EventSource cannot send a token.
//
//   openStream(ask, onEvent, onState) → {close()}
//     ask(signal, lastID) resolves to the body of a response, or throws a Problem; with problem.again it is called
//     again immediately. A permanent problem (a 4xx except 408 and 429) ends the stream.
//   eventReader(onEvent, onID) → a function that takes chunks of text

import {released} from './press.js';

const firstWait = 500; // milliseconds
const longestWait = 5000;
const silence = 40000; // milliseconds; the server sends an event or a comment every 15 seconds
const hiddenFor = 3000; // milliseconds after which a hidden page closes its stream

export function openStream(ask, onEvent, onState) {
	return new Stream(ask, onEvent, onState);
}

class Stream {
	constructor(ask, onEvent, onState) {
		Object.assign(this, {ask, onEvent, onState, lastID: '', attempts: 0, control: null, closed: false, timer: 0});
		this.seen = () => this.visible();
		document.addEventListener('visibilitychange', this.seen);
		if (!document.hidden) this.run();
	}

	close() {
		this.closed = true;
		this.pause();
		document.removeEventListener('visibilitychange', this.seen);
	}

	pause() {
		clearTimeout(this.timer);
		clearTimeout(this.watch);
		this.control?.abort();
		this.control = null;
	}

	visible() {
		clearTimeout(this.hiding);
		if (document.hidden) {
			this.hiding = setTimeout(() => this.pause(), hiddenFor);
		} else if (!this.control && !this.closed) {
			clearTimeout(this.timer);
			this.attempts = 0;
			this.run();
		}
	}

	async run() {
		const control = new AbortController();
		this.control = control;
		let problem;
		try {
			this.expect();
			const body = await this.ask(control.signal, this.lastID);
			await this.read(body, control);
		} catch (e) {
			problem = e;
		}
		clearTimeout(this.watch);
		await released();
		if (this.closed || this.control !== control) return; // closed or replaced meanwhile
		this.control = null;
		this.over(problem);
	}

	async read(body, control) {
		const take = eventReader((name, data) => this.event(name, data), (id) => {
			this.lastID = id;
		});
		const reader = body.pipeThrough(new TextDecoderStream()).getReader();
		await released();
		if (control.signal.aborted) return;
		this.onState('live');
		for (;;) {
			const {done, value} = await reader.read();
			if (done) return;
			this.expect();
			await released();
			if (control.signal.aborted) return;
			take(value);
		}
	}

	event(name, data) {
		this.attempts = 0;
		this.onEvent(name, data, this.lastID);
	}

	// expect aborts the request if the server sends nothing for too long.
	expect() {
		clearTimeout(this.watch);
		const {control} = this;
		this.watch = setTimeout(() => {
			if (this.control === control) control.abort();
		}, silence);
	}

	over(problem) {
		const status = problem?.status ?? 0;
		if (status >= 400 && status < 500 && status !== 408 && status !== 429 && !problem.again) {
			this.close();
			this.onState('ended', problem);
			return;
		}
		if (!problem?.again) this.onState('reconnecting', problem);
		const wait = problem?.again ? 0 : Math.min(longestWait, firstWait * 2 ** this.attempts) * (0.7 + 0.6 * Math.random());
		this.attempts++;
		this.timer = setTimeout(() => {
			if (!document.hidden) this.run();
		}, wait);
	}
}

export function eventReader(onEvent, onID) {
	let rest = '';
	let name = '';
	let data = [];
	const line = (text) => {
		if (text === '') {
			if (data.length > 0) onEvent(name || 'message', parsed(data.join('\n')));
			name = '';
			data = [];
			return;
		}
		const at = text.indexOf(':');
		const field = at < 0 ? text : text.slice(0, at);
		const value = at < 0 ? '' : text.slice(at + 1).replace(/^ /, '');
		if (field === 'event') name = value;
		else if (field === 'data') data.push(value);
		else if (field === 'id') onID(value);
	};
	return (text) => {
		const lines = (rest + text).split(/\r\n|\n|\r(?!$)/);
		rest = lines.pop();
		lines.forEach(line);
	};
}

function parsed(text) {
	try {
		return JSON.parse(text);
	} catch {
		return text;
	}
}
