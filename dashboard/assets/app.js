// SPDX-License-Identifier: Apache-2.0
//
// The router of the dashboard.
//
// Each page is a module pages/NAME.js:
//   export default {title, nav, async mount(root, params, ctx) → unmount function or nothing, refresh(params)}
// nav is the selected item of the navigation ('keys' for a single key). params is the URLSearchParams of the
// fragment's query. It also has path (the segments after the page name, [NAME] for #/rules/NAME), name (the first
// segment), and every parameter as a property. If only the parameters change, the router calls refresh, if defined,
// instead of mounting the page again. The top bar shows the title; a page without an h1 gets a hidden one.
// ctx is {me, navigate(hash), live}.
//
//   navigate(hash, {replace})  goes to a page, such as '#/rules/search'

import {clear, h} from './ui/dom.js';
import {load, me, openLink} from './shell/session.js';
import {live} from './shell/live.js';
import {shell} from './shell/shell.js';

const pages = {
	overview: () => import('./pages/overview.js'),
	rules: () => import('./pages/rules.js'),
	keys: () => import('./pages/keys.js'),
	key: () => import('./pages/key.js'),
	explain: () => import('./pages/explain.js'),
	playground: () => import('./pages/playground.js'),
	violations: () => import('./pages/violations.js'),
	ai: () => import('./pages/ai.js'),
};
const first = 'overview';
const main = document.getElementById('main');
let shown = {name: '', path: '', page: null, unmount: null, ready: false, failed: false};
let turn = 0; // number of the latest navigation; older ones that are still loading are dropped
let frame = null;

class Params extends URLSearchParams {
	constructor(query, path) {
		super(query);
		for (const [name, value] of this) if (!(name in this)) this[name] = value;
		this.path = path;
		this.name = path[0] ?? '';
	}
}

function routeOf(hash) {
	const [path, ...query] = (hash.startsWith('#/') ? hash.slice(2) : '').split('?');
	const [name, ...rest] = path.split('/').filter(Boolean).map(decode);
	return {name: name ?? first, params: new Params(query.join('?'), rest)};
}

function decode(text) {
	try {
		return decodeURIComponent(text);
	} catch {
		return text;
	}
}

export function navigate(hash, {replace = false} = {}) {
	if (replace) {
		history.replaceState(null, '', hash);
		route();
	} else {
		location.hash = hash;
	}
}

async function route() {
	const {name, params} = routeOf(location.hash);
	const mine = ++turn;
	const ctx = {get me() { return me(); }, navigate, live};
	const path = [name, ...params.path].join('/');
	const moved = shown.name !== '' && shown.path !== path;
	const held = main.contains(document.activeElement) ? document.activeElement : null;
	if (shown.name === name && shown.ready && shown.page.refresh) {
		shown.path = path;
		shown.page.refresh(params, ctx);
		refocus(moved, held);
		return;
	}
	let page;
	try {
		page = pages[name] ? (await pages[name]()).default : notFoundPage(name);
	} catch (e) {
		page = errorPage(e);
	}
	if (mine !== turn) return;
	unmountPage();
	document.title = `${page.title} · mete`;
	main.setAttribute('aria-label', page.title);
	frame.select(navOf(name, page), page.title);
	const root = h('div', {class: `page page-${pages[name] ? name : 'none'}`});
	clear(main).append(root);
	shown = {name, path, page, unmount: null, ready: false, failed: false};
	if (moved) refocus(moved, held);
	try {
		const unmount = await page.mount(root, params, ctx);
		if (mine !== turn) {
			unmount?.();
			return;
		}
		Object.assign(shown, {unmount, ready: true});
		refocus(false, held);
		if (!root.querySelector('h1')) root.prepend(h('h1', {class: 'visually-hidden'}, page.title));
	} catch (e) {
		if (mine === turn) {
			shown.failed = true; // start retries when the server is reachable again
			showError(root, e);
		}
	}
}

function navOf(name, page) {
	if (typeof page.nav === 'string') return page.nav;
	return name === 'key' ? 'keys' : name;
}

// refocus moves the focus to the start of a new page. On the same page it restores the focus to the held element or
// its replacement with the same id.
function refocus(moved, held) {
	if (moved) {
		main.focus({preventScroll: true});
		scrollTo(0, 0);
	} else if (held && document.activeElement === document.body) {
		((held.id && document.getElementById(held.id)) || main).focus({preventScroll: true});
	}
}

function unmountPage() {
	try {
		shown.unmount?.();
	} catch (e) {
		console.error(e);
	}
}

function notFoundPage(name) {
	return {title: 'Page not found', mount(root) {
		root.append(h('div', {class: 'empty'}, h('h2', null, 'Page not found'), h('p', null, `The dashboard has no page called ${name.slice(0, 60)}.`),
			h('a', {class: 'btn', href: '#/overview'}, 'Go to the overview')));
	}};
}

function errorPage(e) {
	return {title: 'Error', mount: (root) => showError(root, e)};
}

function showError(root, e) {
	console.error(e);
	root.append(h('div', {class: 'notice notice-bad', role: 'alert'}, h('div', null, h('strong', null, 'Cannot show this page. '), e.message,
		h('p', null, h('button', {class: 'btn btn-small', type: 'button', onclick: remount}, 'Try again')))));
}

// remount mounts the page again. It does not reload the document, because the server may be down.
function remount() {
	shown.name = '';
	route();
}

async function start() {
	frame = shell({live, reroute: remount});
	live.on('connection', (state) => state === 'live' && shown.failed && remount());
	if (!await openLink()) await load().catch(() => {}); // the stream reports when the server is reachable again
	live.start();
	document.querySelector('.skip').addEventListener('click', (e) => {
		e.preventDefault(); // the fragment is the route
		main.focus();
	});
	addEventListener('hashchange', async () => {
		await openLink(); // a sign-in link pasted into this tab
		route();
	});
	await route();
}

start();
