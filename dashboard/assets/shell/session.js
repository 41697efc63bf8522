// SPDX-License-Identifier: Apache-2.0
//
// The viewer's session.
//
//   me()              the response of v1/me: {name, role, see_keys, sign_in, version, started, instance, features};
//                     {} before the first response
//   load()            requests v1/me again and resolves to it
//   may(role)         reports whether the viewer has a role (read, operate, configure) or a higher one
//   onChange(f)       calls f after changes; returns a function that stops it
//   signIn(reason)    asks for a token in a dialog; resolves to whether there is a new one
//   openLink()        signs in with the one-time token in the fragment and removes it from the address; resolves to
//                     whether there was one
//   signOut()         deletes the token; the page then asks for one
//   token()           the token, or ''
//   urlOf(path)       the URL of an API path
//
// The token is stored for this tab only and sent as Authorization: Bearer.

import {h} from '../ui/dom.js';
import {ask} from './dialog.js';
import {learn} from './vocabulary.js';

const place = 'mete-token';
const ranks = {read: 1, operate: 2, configure: 3};
const listeners = new Set();
let current = {features: {}};
let kept = '';
let asking = null;

try {
	kept = sessionStorage.getItem(place) ?? '';
} catch {
	// without storage, the token lasts until the page is closed
}

export function me() {
	return current;
}

export function token() {
	return kept;
}

export function may(role) {
	return (ranks[current.role] ?? 0) >= ranks[role];
}

export function onChange(f) {
	listeners.add(f);
	return () => listeners.delete(f);
}

// urlOf returns the URL of an API path, such as v1/me. index.html contains the base URL.
export function urlOf(path) {
	const api = document.querySelector('meta[name="mete-api"]').content;
	return new URL(api + path, document.baseURI).href;
}

// say publishes a response of v1/me.
export function say(answer) {
	current = {...answer, features: answer.features ?? {}};
	learn(answer);
	for (const f of [...listeners]) f(current);
	return current;
}

export async function load() {
	const answer = await fetch(urlOf('v1/me'), {headers: kept ? {Authorization: `Bearer ${kept}`} : {}, cache: 'no-store'});
	if (answer.ok) return say(await answer.json());
	const problem = await answer.json().catch(() => ({}));
	if (answer.status === 401 || answer.status === 403) return say({name: '', role: '', sign_in: problem.detail});
	throw new Error(problem.detail ?? `v1/me returned status ${answer.status}`);
}

function keep(value) {
	kept = value;
	try {
		if (value) sessionStorage.setItem(place, value);
		else sessionStorage.removeItem(place);
	} catch {
		// as above
	}
}

export function signIn(reason = '') {
	asking ??= askToken(reason).finally(() => {
		asking = null;
	});
	return asking;
}

function sentence(text) {
	return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`;
}

async function askToken(reason) {
	const before = kept;
	let wrong = '';
	for (;;) {
		const answer = await ask({
			title: 'Sign in',
			body: [reason && h('p', null, sentence(reason)), current.sign_in && !reason.includes(current.sign_in) && h('p', {class: 'muted'}, sentence(current.sign_in))],
			confirm: 'Sign in',
			fields: [{name: 'token', label: 'Token', type: 'password', required: true, hint: 'The token is stored in this tab only.', mistake: wrong}],
		});
		if (!answer) {
			keep(before);
			if (wrong) await load().catch(() => {}); // the rejected token has changed me()
			return false;
		}
		keep(answer.token.trim());
		try {
			await load();
			if (current.role) return true;
			wrong = 'The server rejected this token.';
		} catch (e) {
			wrong = `Cannot reach the server: ${e.message}`;
		}
	}
}

// openLink removes the token from the address first, so that neither the history nor a copied address contains it.
export async function openLink() {
	const [, once] = /^#token=([\w-]+)$/.exec(location.hash) ?? [];
	if (!once) return false;
	history.replaceState(null, '', location.pathname + location.search);
	let reason = '';
	try {
		const answer = await fetch(new URL('session', document.baseURI), {
			method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify({token: once}), cache: 'no-store',
		});
		const said = await answer.json();
		if (answer.ok) keep(said.token);
		else reason = said.detail;
		if (answer.ok && asking) location.reload(); // closes the dialog that asks for a token
	} catch (e) {
		reason = `cannot reach the server: ${e.message}`;
	}
	await load().catch(() => {}); // the stream reports when the server is reachable again
	if (reason) signIn(reason);
	return true;
}

export async function signOut() {
	keep('');
	await load().catch(() => say({name: '', role: ''}));
}
