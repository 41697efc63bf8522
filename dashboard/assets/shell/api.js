// SPDX-License-Identifier: Apache-2.0
//
// Requests to the server.
//
//   get(path, {signal}), post(path, body, {signal}), put(path, body), del(path, body)
//              resolve to the JSON of the response (null if empty) or throw a Problem. path is an API path, v1/…. A
//              string body is sent as text, any other body as JSON.
//   Problem    an Error with status, title, detail, pointer, `mistakes`. status 0: the server is unreachable.
//   stream(path, {onEvent(name, data, id), onState('live' | 'reconnecting' | 'ended', problem)}) → {close()}
//              server-sent events, with reconnects; paused while the page is hidden
//   headers()  the headers for other requests
//   serverNow()  the time of the server's clock in ms, accurate to a second
//
// Responses that arrive during a press are delivered after it (press.js), so that pages do not move during the press.
//
// If a request needs a token, the sign-in dialog asks for one and the request is repeated. If the viewer declines,
// background requests (get, stream) do not open the dialog again.

import {onChange, signIn, token, urlOf} from './session.js';
import {openStream} from './stream.js';
import {released} from './press.js';

let declined = false;
let ahead = 0; // ms by which the local clock is ahead of the server's
onChange(() => {
	declined = false;
});

export class Problem extends Error {
	constructor({status = 0, title = '', detail = '', pointer = '', mistakes = []}) {
		super(detail || title || `the server returned status ${status}`);
		Object.assign(this, {name: 'Problem', status, title: title || 'Error', detail: detail || title, pointer, mistakes});
	}
}

export function serverNow() {
	return Date.now() - ahead;
}

export function headers() {
	return token() ? {Authorization: `Bearer ${token()}`} : {};
}

export function get(path, {signal} = {}) {
	return request('GET', path, undefined, signal);
}

export function post(path, body, {signal} = {}) {
	return request('POST', path, body, signal);
}

export function put(path, body) {
	return request('PUT', path, body);
}

export function del(path, body) {
	return request('DELETE', path, body);
}

async function request(method, path, body, signal) {
	for (;;) {
		const answer = await send(method, path, body, signal);
		const result = await (answer.ok ? jsonOf : problemOf)(answer);
		await released();
		signal?.throwIfAborted();
		if (answer.ok) return result;
		const problem = result;
		if (!await retryWithSignIn(problem, method !== 'GET')) throw problem;
	}
}

// send throws a Problem if the server is unreachable.
async function send(method, path, body, signal, more = {}) {
	const head = {Accept: 'application/json', ...headers(), ...more};
	if (body !== undefined) head['Content-Type'] = typeof body === 'string' ? 'text/plain; charset=utf-8' : 'application/json';
	const content = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
	try {
		const answer = await fetch(urlOf(path), {method, headers: head, body: content, signal, cache: 'no-store'});
		noteTime(answer.headers.get('Date'));
		return answer;
	} catch (e) {
		if (e.name === 'AbortError') throw e;
		throw new Problem({title: 'Unreachable', detail: 'the server is unreachable'});
	}
}

// noteTime updates ahead from a Date header. It ignores differences within the header's resolution.
function noteTime(date) {
	const off = Date.now() - Date.parse(date ?? '');
	if (!Number.isNaN(off)) ahead = Math.abs(off) < 2000 ? 0 : off;
}

async function jsonOf(answer) {
	const text = await answer.text();
	if (text.trim() === '') return null;
	try {
		return JSON.parse(text);
	} catch {
		throw new Problem({status: answer.status, title: 'Invalid response', detail: 'the response is not valid JSON'});
	}
}

async function problemOf(answer) {
	const said = await answer.json().catch(() => ({}));
	return new Problem({...said, title: said.title ?? answer.statusText, status: answer.status});
}

// retryWithSignIn reports whether to repeat the request with a new token.
async function retryWithSignIn(problem, wanted) {
	if (problem.status !== 401 && problem.status !== 403) return false;
	if (declined && !wanted) return false;
	const done = await signIn(problem.detail);
	declined = !done;
	return done;
}

export function stream(path, {onEvent, onState = () => {}}) {
	const ask = async (signal, lastID) => {
		const answer = await send('GET', path, undefined, signal, {Accept: 'text/event-stream', ...(lastID ? {'Last-Event-ID': lastID} : {})});
		if (answer.ok) return answer.body;
		const problem = await problemOf(answer);
		problem.again = await retryWithSignIn(problem, false);
		throw problem;
	};
	return openStream(ask, onEvent, onState);
}
