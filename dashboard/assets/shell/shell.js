// SPDX-License-Identifier: Apache-2.0
//
// The frame around a page: navigation, connection, account, theme, activity.
//
//   shell({live, reroute}) → {select(nav, title)}   reroute mounts the page again, after the viewer has changed

import {h, replace, show} from '../ui/dom.js';
import {keyed} from '../ui/keyed.js';
import {ago, dateTime, time} from '../ui/format.js';
import {load, may, me, onChange, signIn, signOut} from './session.js';
import {activity, onActivity, toast, undoActivity} from './dialog.js';
import {icon} from './icons.js';
import {menu} from './menu.js';

const places = [
	{nav: 'overview', label: 'Overview'},
	{nav: 'rules', label: 'Rules'},
	{nav: 'keys', label: 'Keys', needs: 'top'},
	{nav: 'explain', label: 'Explain'},
	{nav: 'playground', label: 'Playground', short: 'Play'},
	{nav: 'violations', label: 'Violations', needs: 'violations'},
	{nav: 'ai', label: 'AI', needs: 'ai'},
];

export function shell({live, reroute}) {
	const title = h('p', {class: 'title'}, 'Overview');
	const list = h('ul', {class: 'plain nav-list'});
	const foot = h('div', {class: 'rail-foot'});
	replace(document.getElementById('rail'), h('a', {class: 'brand', href: '#/overview', 'aria-label': 'mete: overview'}, icon('brand'), h('span', null, 'mete')),
		h('nav', {class: 'nav', 'aria-label': 'Pages'}, list), foot);
	replace(document.getElementById('topbar'), title, connection(live), themeMenu(), activityMenu(), account());

	let selected = 'overview';
	const navigation = keyed(list, {id: (p) => p.nav, make: navItem});
	const draw = () => navigation(places.filter((p) => !p.needs || me().features[p.needs] || p.nav === selected)
		.map((p) => ({...p, here: p.nav === selected})));
	const lines = keyed(foot, {id: (l) => l.what, make: footLine});
	const server = () => {
		const s = live.state;
		const version = s?.version ?? me().version;
		lines([version && {what: 'version', text: `mete ${version}`}, s?.started && {what: 'started', text: `started ${ago(s.started)}`, title: dateTime(s.started)},
			{what: 'zone', text: `times in ${zoneNow()}`}].filter(Boolean));
	};
	let who = '';
	onChange((m) => {
		draw();
		server();
		const now = `${m.name}|${m.role}`;
		if (who && (now !== who || live.connection === 'ended')) {
			live.stop();
			live.start();
			reroute();
		}
		who = now;
	});
	live.on('state', server);
	live.on('connection', (state) => {
		if (state === 'live' && !me().instance) load().then(reroute, () => {}); // the server was down when the page was opened
	});
	live.on('instance', () => {
		toast({text: 'The server was restarted. Rates start again; this page keeps its earlier data.'});
		load().catch(() => {});
	});
	draw();
	return {select(nav, text) {
		selected = nav;
		title.textContent = text;
		draw();
	}};
}

function navItem({nav, label, short}) {
	const link = h('a', {class: 'nav-link', href: `#/${nav}`, title: label}, icon(nav), h('span', {class: short ? 'nav-long' : null}, label),
		short && h('span', {class: 'nav-short', 'aria-hidden': 'true'}, short));
	const update = ({here}) => (here ? link.setAttribute('aria-current', 'page') : link.removeAttribute('aria-current'));
	return {node: h('li', null, link), update};
}

function footLine({what}) {
	const node = h('div', {class: what === 'version' ? 'rail-version' : null});
	return {node, update({text, title = ''}) {
		if (node.textContent !== text) node.textContent = text;
		node.title = title;
	}};
}

// zoneNow returns the browser's time zone, which all pages use.
function zoneNow() {
	return new Intl.DateTimeFormat('en-GB', {timeZoneName: 'short'}).formatToParts(new Date()).find((p) => p.type === 'timeZoneName').value;
}

// connection shows whether the page is up to date.
function connection(live) {
	const word = h('span', {class: 'conn-word'});
	const node = h('div', {class: 'conn', role: 'status', dataset: {state: 'connecting'}}, h('span', {class: 'conn-dot', 'aria-hidden': 'true'}), word);
	const draw = () => {
		const state = live.connection;
		node.dataset.state = state;
		const words = {connecting: 'Connecting', live: 'Live', reconnecting: 'Reconnecting', ended: 'Not connected'};
		word.textContent = words[state];
		node.title = state === 'live' ? 'Live: updated every second' : live.heard ? `Data from ${time(live.heard)}` : 'No data yet';
	};
	live.on('connection', draw);
	draw();
	return node;
}

function themeMenu() {
	const root = document.documentElement;
	const choose = (theme) => {
		if (theme === 'auto') delete root.dataset.theme;
		else root.dataset.theme = theme;
		try {
			localStorage.setItem('mete-theme', theme);
		} catch {
			// without storage, the theme lasts until the page is closed
		}
	};
	const themes = [['auto', 'System'], ['light', 'Light'], ['dark', 'Dark']];
	return menu({label: 'Theme', face: () => [icon('theme')], content: (close) => {
		const now = root.dataset.theme ?? 'auto';
		return h('div', {class: 'menu-list', role: 'group', 'aria-label': 'Theme'}, themes.map(([theme, text]) =>
			h('button', {type: 'button', class: 'menu-item', 'aria-pressed': String(theme === now), onclick: () => {
				choose(theme);
				close();
			}}, icon(theme === now ? 'check' : 'none'), text)));
	}});
}

function activityMenu() {
	const made = menu({label: 'Activity', wide: true, face: () => {
		const open = activity.filter((a) => a.undo && !a.undone).length;
		return [icon('activity'), open > 0 && h('span', {class: 'count'}, String(open), h('span', {class: 'visually-hidden'}, ' can be undone'))];
	}, content: activityList});
	onActivity(() => made.redraw());
	return made;
}

function activityList() {
	const none = h('p', {class: 'muted'}, 'Your changes and other events appear here until you close the page. You can undo your changes.');
	const list = h('ul', {class: 'plain activity'});
	const update = keyed(list, {id: ({entry}) => entry, make: entryRow});
	const node = h('div', {class: 'menu-body'}, h('h2', null, 'Activity'), none, list);
	node.redraw = () => {
		none.hidden = activity.length > 0;
		list.hidden = !none.hidden;
		update(activity.map((entry) => ({entry, undone: entry.undone, busy: entry.busy})));
	};
	node.redraw();
	return node;
}

// entryRow keeps its button during the undo, so that the button keeps the focus.
function entryRow({entry}) {
	const button = entry.undo && h('button', {type: 'button', class: 'btn btn-small', onclick: () => undoActivity(entry)}, entry.undoLabel);
	const node = h('li', {class: entry.kind === 'bad' ? 'denied' : null}, h('span', {class: 'activity-text'}, entry.text, h('span', {class: 'hint'}, time(entry.at))), button);
	return {node, update({undone, busy}) {
		if (!button) return;
		button.setAttribute('aria-disabled', String(busy));
		if (!undone || !node.contains(button)) return;
		const held = button === document.activeElement;
		button.replaceWith(h('span', {class: 'badge'}, 'Undone'));
		if (held) node.closest('[tabindex]')?.focus();
	}};
}

const roleNames = {read: 'Read only', operate: 'Operator', configure: 'Owner'}; // for viewers without a name
const roleWords = {
	read: 'read only',
	operate: 'read, and change keys and overrides',
	configure: 'full access',
};

function account() {
	const made = menu({label: 'Account', face: () => {
		const {name, role} = me();
		return role ? [icon('person'), h('span', {class: 'who'}, show(name || roleNames[role] || role, 24))] : [icon('person'), h('span', {class: 'who'}, 'Sign in')];
	}, content: (close) => {
		const {name, role, sign_in: how, see_keys: keys} = me();
		return h('div', {class: 'menu-body'},
			role ? h('p', null, h('strong', null, show(name || 'You', 60)), ` ${name ? 'has' : 'have'} the role ${role}: ${roleWords[role] ?? role}.`) : h('p', null, 'You are not signed in.'),
			role && h('p', {class: 'hint'}, keys ? 'Keys are shown in full.' : 'Keys are masked. To see them, you need the role operate.'),
			!may('configure') && how && h('p', {class: 'hint'}, how),
			h('div', {class: 'row'}, h('button', {type: 'button', class: 'btn', onclick: () => {
				close();
				signIn();
			}}, role ? 'Sign in with another token' : 'Sign in'),
			role && name !== 'local' && h('button', {type: 'button', class: 'btn btn-ghost', onclick: () => {
				close();
				signOut();
			}}, 'Sign out')));
	}});
	onChange(() => made.redraw());
	return made;
}
