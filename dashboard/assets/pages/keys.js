// SPDX-License-Identifier: Apache-2.0

import {h, replace, show} from '../ui/dom.js';
import {dur, num, rate} from '../ui/format.js';
import {get} from '../shell/api.js';
import {me} from '../shell/session.js';
import {keyTable} from '../keys/table.js';
import {ruleList} from '../rules/list.js';
import {overridesTab} from '../overrides/tab.js';

const EVERY = 2000; // ms between requests
const TICK = 250; // ms between updates of a countdown
const MOST = 50; // keys

const kinds = {
	denied: {label: 'Denied', total: 'denials', heading: 'Most denied keys',
		empty: 'No denied keys', hint: 'The most denied keys appear here as soon as a rule denies a request.'},
	near: {label: 'Near limit', total: 'requests allowed near a limit', heading: 'Keys near their limit',
		empty: 'No keys near a limit', hint: 'Keys that are still allowed but have few tokens left appear here before they are denied.'},
	shadow: {label: 'Shadow', total: 'requests that shadow rules would deny', heading: 'Keys that shadow rules would deny',
		empty: 'No shadow denials', hint: 'Set “mode: shadow” in a rule to see which keys it would deny.'},
	overrides: {label: 'Overrides', heading: 'Exceptions from the policy'},
};

let page = null; // the current page: {draw(params)}

export default {
	title: 'Keys',
	nav: 'keys',
	mount(root, params, ctx) {
		let leave = null;
		const links = h('nav', {class: 'tabs', 'aria-label': 'Kinds of keys'});
		const body = h('div', {class: 'stack'});
		replace(root, h('div', {class: 'stack'}, links, body));
		page = {draw(next) {
			leave?.();
			const kind = kinds[next.get('kind')] ? next.get('kind') : 'denied';
			drawTabs(links, kind, next);
			leave = kind === 'overrides' ? overridesTab(body, ctx) : keysOf(body, kind, next, ctx);
		}};
		page.draw(params);
		return () => leave?.();
	},
	// refresh keeps the tabs and their focus.
	refresh(params) {
		page.draw(params);
	},
};

function keysOf(body, kind, params, ctx) {
	if (!me().features.top) {
		replace(body, blank('This server does not count keys', 'To count keys in your own program, pass a tracker of package topkeys to the API.'));
		return undefined;
	}
	return liveKeys(body, kind, params, ctx);
}

function drawTabs(node, current, params) {
	const links = Object.entries(kinds).map(([name, kind]) => [name, href({...Object.fromEntries(params), kind: name}), kind.label]);
	if (node.childElementCount === 0) {
		replace(node, links.map(([name, , label]) => h('a', {dataset: {kind: name}}, label)));
	}
	for (const [i, [name, to]] of links.entries()) {
		const link = node.children[i];
		link.setAttribute('href', to);
		name === current ? link.setAttribute('aria-current', 'page') : link.removeAttribute('aria-current');
	}
}

function href(values) {
	const query = new URLSearchParams(Object.entries(values).filter(([, v]) => v));
	return `#/keys?${query}`;
}

function blank(title, ...hint) {
	return h('div', {class: 'empty'}, h('h2', null, title), h('p', null, ...hint));
}

// liveKeys shows the keys of one kind and refreshes them every two seconds.
function liveKeys(root, kind, params, ctx) {
	const filter = {rule: params.get('rule') ?? '', window: params.get('window') ?? ''};
	const summary = h('p', {class: 'keys-summary'});
	const note = h('p', {class: 'keys-note', role: 'status'});
	const rest = h('p', {class: 'keys-rest'});
	const place = h('div', {class: 'keys-place card card-flush'});
	const nobody = emptyOf(kind, filter);
	const table = keyTable({caption: kinds[kind].heading, kind, onOrder: (held) => place.classList.toggle('held', held)});
	const change = (values) => ctx.navigate(href({kind, ...filter, ...values}));
	const rules = select('Rule', [['', 'All rules']], filter.rule, (rule) => change({rule}));
	const window = select('Time', [['', 'Last minute'], ['30s', 'Last 30 s'], ['10s', 'Last 10 s']], filter.window, (w) => change({window: w}));
	const pause = h('button', {type: 'button', class: 'btn', 'aria-pressed': 'false', onclick: () => setPaused(!paused)}, 'Pause');
	const held = h('span', {class: 'held-note'}, 'order paused while you point at a row');
	replace(root,
		h('div', {class: 'toolbar'}, summary, h('span', {class: 'toolbar-choices'}, rules.node, window.node, pause)), place, h('div', {class: 'keys-foot'}, h('div', null, rest, note), held));

	let paused = false;
	let ended = false;
	let timer = 0;
	let shown = null;

	const setPaused = (value) => {
		paused = value;
		pause.setAttribute('aria-pressed', String(paused));
		pause.textContent = paused ? 'Resume' : 'Pause';
		place.classList.toggle('paused', paused);
		paused || look();
	};
	const look = async () => {
		clearTimeout(timer);
		if (ended || paused || document.hidden) {
			return; // onVisible or setPaused looks again
		}
		try {
			const query = new URLSearchParams({kind, limit: String(MOST)});
			filter.rule && query.set('rule', filter.rule);
			filter.window && query.set('window', filter.window);
			const top = await get(`v1/top?${query}`);
			if (ended || paused) {
				return;
			}
			note.textContent = '';
			drawTop(top);
		} catch (err) {
			note.textContent = `${show(err.message, 300)}${shown ? ' · The list is out of date.' : ''}`;
		}
		timer = ended ? 0 : setTimeout(look, EVERY);
	};
	const drawTop = (top) => {
		shown = top;
		const now = h('p', null, summaryOf(top, kind));
		if (now.textContent !== summary.textContent) {
			replace(summary, ...now.childNodes); // otherwise keep the text selection
		}
		const wanted = top.keys.length > 0 || (table.node.isConnected && table.holds()) ? table.node : nobody;
		if (!wanted.isConnected) {
			place.replaceChildren(wanted);
		}
		table.update(top, Date.now());
		rest.textContent = restText(top);
	};
	const onVisible = () => document.hidden || look();
	document.addEventListener('visibilitychange', onVisible);
	const ticking = setInterval(() => document.hidden || paused || table.tick(Date.now()), TICK);
	look();
	ruleList().then((list) => rules.update(list.map((r) => [r.name, show(r.name, 64)])));
	return () => {
		ended = true;
		clearTimeout(timer);
		clearInterval(ticking);
		document.removeEventListener('visibilitychange', onVisible);
	};
}

// summaryOf returns the totals.
function summaryOf(top, kind) {
	const seconds = Math.max((Date.parse(top.at) - Date.parse(top.since)) / 1000, 1);
	const nodes = [h('strong', null, num(top.total)), ` ${kinds[kind].total} in the last ${dur(Math.round(seconds))}`];
	if (top.total > 0) {
		nodes.push(` (${rate(top.total / seconds)}), by ${top.rule_count} ${top.rule_count === 1 ? 'rule' : 'rules'}`);
	}
	nodes.push('.');
	if (top.masked) {
		nodes.push(' ', h('span', {class: 'badge'}, 'masked'), ' To see keys, you need the role operate.');
	} else if (top.keys.some((k) => k.parts?.some((p) => p.hashed))) {
		nodes.push(' ~ marks the hash of a long value or a possible secret.');
	}
	return nodes;
}

// restText describes the keys that are not listed.
function restText(top) {
	if (top.keys.length === 0) {
		return '';
	}
	const most = Math.max(0, ...top.rules.map((r) => r.unlisted), top.keys.length >= MOST ? top.keys.at(-1).count : 0);
	const text = most > 0 ? `No other key has more than ${num(most)}.` : 'There are no other keys.';
	return top.dropped > 0 ? `${text} ${num(top.dropped)} more requests were not counted.` : text;
}

function emptyOf(kind, filter) {
	if (filter.rule) {
		return blank(`${kinds[kind].empty} for rule ${show(filter.rule, 64)}`, h('a', {href: href({kind})}, 'Show all rules'));
	}
	return blank(kinds[kind].empty, kinds[kind].hint);
}

// select is a labeled list. It keeps the selected value, even if the value is no longer an option.
function select(label, fixed, chosen, onChange) {
	const list = h('select', {class: 'select', onchange: () => onChange(list.value)});
	let offered = '';
	const update = (more) => {
		const options = [...fixed, ...more];
		if (!options.some(([value]) => value === chosen)) {
			options.push([chosen, show(chosen, 60)]);
		}
		const text = JSON.stringify(options);
		if (text !== offered && document.activeElement !== list) { // do not change an open list
			offered = text;
			replace(list, ...options.map(([value, words]) => h('option', {value, selected: value === chosen}, words)));
			list.value = chosen;
		}
	};
	update([]);
	return {node: h('label', {class: 'choice'}, h('span', null, label), list), update};
}
