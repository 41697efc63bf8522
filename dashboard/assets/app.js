// SPDX-License-Identifier: Apache-2.0
//
// The dashboard: which page is shown.
//
// A page is pages/NAME.js with
//   export default {title, nav, async mount(root, params, ctx) → unmount function or nothing, refresh(params)}
// nav is the route in the navigation that is the page's (Keys for a key). params is a URLSearchParams of what follows
// the question mark, with path: what follows the name ([NAME] of #/rules/NAME), name: the first of those, and every
// parameter as a property too. refresh, if a page has it, is called instead of mounting it anew when only the
// parameters changed.
// The title stands in the top bar, so a page needs no heading of the first rank; one without gets it unseen.
// ctx is {me, navigate(hash), live}.
//
//   navigate(hash, {replace})  goes to '#/rules/search' and the like

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
};
const first = 'overview';
const main = document.getElementById('main');
let shown = {name: '', path: '', page: null, unmount: null, ready: false, failed: false};
let turn = 0; // of the newest navigation: an older one that is still loading is dropped
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
	const [name, ...rest] = path.split('/').filter(Boolean).map(decoded);
	return {name: name ?? first, params: new Params(query.join('?'), rest)};
}

function decoded(text) {
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
		page = pages[name] ? (await pages[name]()).default : missing(name);
	} catch (e) {
		page = broken(e);
	}
	if (mine !== turn) return;
	leave();
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
			shown.failed = true; // until the server is there again
			complain(root, e);
		}
	}
}

function navOf(name, page) {
	if (typeof page.nav === 'string') return page.nav;
	return name === 'key' ? 'keys' : name;
}

// refocus goes to the beginning of another page. On the same one the focus stays where it was, or goes to what stands
// there now by the same id.
function refocus(moved, held) {
	if (moved) {
		main.focus({preventScroll: true});
		scrollTo(0, 0);
	} else if (held && document.activeElement === document.body) {
		((held.id && document.getElementById(held.id)) || main).focus({preventScroll: true});
	}
}

function leave() {
	try {
		shown.unmount?.();
	} catch (e) {
		console.error(e);
	}
}

function missing(name) {
	return {title: 'No such page', mount(root) {
		root.append(h('div', {class: 'empty'}, h('h2', null, 'There is no such page'), h('p', null, `Nothing is called ${name.slice(0, 60)} here.`),
			h('a', {class: 'btn', href: '#/overview'}, 'Go to the overview')));
	}};
}

function broken(e) {
	return {title: 'Error', mount: (root) => complain(root, e)};
}

function complain(root, e) {
	console.error(e);
	root.append(h('div', {class: 'notice notice-bad', role: 'alert'}, h('div', null, h('strong', null, 'The page cannot be shown. '), e.message,
		h('p', null, h('button', {class: 'btn btn-small', type: 'button', onclick: again}, 'Load it again')))));
}

// again shows the page anew. It does not load the document again: while the server is away there is none.
function again() {
	shown.name = '';
	route();
}

async function begin() {
	frame = shell({live, reroute: again});
	live.on('connection', (state) => state === 'live' && shown.failed && again());
	if (!await openLink()) await load().catch(() => {}); // the stream says when the server is there again
	live.start();
	document.querySelector('.skip').addEventListener('click', (e) => {
		e.preventDefault(); // what stands behind # is the page
		main.focus();
	});
	addEventListener('hashchange', async () => {
		await openLink(); // pasted into this tab
		route();
	});
	await route();
}

begin();
