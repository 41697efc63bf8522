// SPDX-License-Identifier: Apache-2.0
//
// Who looks.
//
//   me()              what v1/me said: {name, role, see_keys, sign_in, version, started, instance, features};
//                     {} before it was asked
//   load()            asks v1/me again, and resolves to it
//   may(role)         whether the viewer has that role (read, operate, configure) or a higher one
//   onChange(f)       calls f when that changed; returns a function that stops it
//   signIn(reason)    asks for a token in a dialog; resolves to whether there is another one now
//   openLink()        signs in by the one-time token that a link has behind #, and removes it from the address;
//                     resolves to whether there was one
//   signOut()         forgets the token; the page then asks for one, as it does at the start
//   token()           the token, or ''
//   urlOf(path)       the URL of a path of the API
//
// The token is kept for this tab only, and sent as Authorization: Bearer.

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
	// without storage the token lasts as long as the page
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

// urlOf is the URL of a path of the API, such as v1/me: the page says where that is.
export function urlOf(path) {
	const api = document.querySelector('meta[name="mete-api"]').content;
	return new URL(api + path, document.baseURI).href;
}

// say tells what v1/me answered.
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
	throw new Error(problem.detail ?? `v1/me answered ${answer.status}`);
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
			fields: [{name: 'token', label: 'Token', type: 'password', required: true, hint: 'It is kept in this tab only.', mistake: wrong}],
		});
		if (!answer) {
			keep(before);
			if (wrong) await load().catch(() => {}); // the one that was tried has said who looks
			return false;
		}
		keep(answer.token.trim());
		try {
			await load();
			if (current.role) return true;
			wrong = 'The server does not know this token.';
		} catch (e) {
			wrong = `The server cannot be asked: ${e.message}`;
		}
	}
}

// The link goes from the address before anything else, so that neither the history nor a copied address has its token.
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
		if (answer.ok && asking) location.reload(); // without the dialog that asks for a token
	} catch (e) {
		reason = `the server cannot be asked: ${e.message}`;
	}
	await load().catch(() => {}); // the stream says when the server is there again
	if (reason) signIn(reason);
	return true;
}

export async function signOut() {
	keep('');
	await load().catch(() => say({name: '', role: ''}));
}
