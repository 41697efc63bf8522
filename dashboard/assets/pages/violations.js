// SPDX-License-Identifier: Apache-2.0

import {h, replace} from '../ui/dom.js';
import {num} from '../ui/format.js';
import {get} from '../shell/api.js';
import {me} from '../shell/session.js';
import {copyLine} from '../shell/copy.js';
import {filterForm} from '../violations/filter.js';
import {queryOf, rangeOf} from '../violations/query.js';
import {violationChart} from '../violations/chart.js';
import {violationFile} from '../violations/file.js';
import {violationTable} from '../violations/table.js';

const PAGE = 50; // rows

export default {
	title: 'Violations',
	nav: true,
	mount(root, params, ctx) {
		if (!me().features.violations) {
			replace(root, unconfigured());
			return undefined;
		}
		return violations(root, params, ctx);
	},
};

// violations shows the rows for the filter in the fragment. A new filter mounts the page again.
function violations(root, params, ctx) {
	const filter = Object.fromEntries([...params].filter(([, value]) => value !== ''));
	const range = rangeOf(filter, Date.now());
	const asked = new AbortController();
	const notice = h('div', {class: 'vio-notice', role: 'alert'});
	const status = h('p', {class: 'visually-hidden', role: 'status'});
	const rows = h('section', {class: 'card card-flush', 'aria-label': 'Denials'});
	const change = (values) => ctx.navigate(hashOf({...filter, ...values}));
	const form = filterForm({filter, range, change,
		refresh: () => ctx.navigate(hashOf(filter), {replace: true}),
		file: violationFile(() => queryOf(filter, range))});
	const chart = violationChart({filter, range});
	const table = violationTable({link: (values) => hashOf({...filter, ...values})});
	const more = h('button', {type: 'button', class: 'btn', onclick: () => look()});
	const foot = h('div', {class: 'vio-foot', hidden: true}, more);
	let next = null;
	let count = 0;
	replace(root, h('div', {class: 'stack'}, form.node, notice, chart.node, rows), status);

	const look = async () => {
		more.disabled = true;
		more.textContent = 'Loading…';
		try {
			const page = await get(`v1/violations?${queryOf(filter, range, {limit: PAGE, cursor: next ?? ''})}`, {signal: asked.signal});
			next = page.next;
			draw(page);
		} catch (err) {
			err.name === 'AbortError' || (count ? form.complain(notice, err) : failed(err));
		}
		more.disabled = false;
		more.textContent = `Show ${PAGE} more`;
	};
	const draw = (page) => {
		replace(notice);
		if (count + page.rows.length === 0) {
			replace(rows, nothing(filter, hashOf));
			status.textContent = 'No denials match';
			return;
		}
		if (count === 0) replace(rows, page.masked && masked(), table.node, foot);
		count += page.rows.length;
		table.add(page.rows);
		foot.hidden = !next;
		status.textContent = `${num(count)} rows shown${next ? ', more available' : ', no more'}`;
	};
	const failed = (err) => {
		form.complain(notice, err);
		replace(rows, h('div', {class: 'empty'}, h('h2', null, 'Cannot show violations'),
			h('button', {type: 'button', class: 'btn', onclick: () => look()}, 'Try again')));
	};
	replace(rows, table.waiting());
	look();
	chart.load(asked.signal).then((names) => names && form.offer(names));
	form.load(asked.signal);
	return () => {
		asked.abort();
		chart.destroy();
	};
}

function hashOf(values) {
	const query = new URLSearchParams(Object.entries(values).filter(([, value]) => value));
	return `#/violations${query.size ? `?${query}` : ''}`;
}

function masked() {
	return h('p', {class: 'vio-masked'}, h('span', {class: 'badge'}, 'masked'),
		' Masked: addresses are networks, paths end after their first segment, and ~… is the hash of a key or a user. To see them, you need the role operate.');
}

function nothing(filter, hash) {
	const by = Object.keys(filter).some((name) => !['range', 'from', 'to'].includes(name));
	return h('div', {class: 'empty'}, h('h2', null, by ? 'No denials match' : 'No denials in this time'),
		h('p', null, by ? 'Try a longer time or fewer filters.' : 'Try a longer time.'),
		h('div', {class: 'row'},
			by && h('a', {class: 'btn', href: hash({range: filter.range, from: filter.from, to: filter.to})}, 'Clear filters'),
			filter.range !== '7d' && h('a', {class: 'btn', href: hash({...filter, range: '7d', from: '', to: ''})}, 'Show 7 days')));
}

// unconfigured shows how to record violations.
function unconfigured() {
	return h('div', {class: 'card'}, h('div', {class: 'empty'},
		h('h2', null, 'Violations are not recorded'),
		h('p', null, 'mete can record denials in PostgreSQL, whatever store holds the buckets. Set a database and restart the server:'),
		copyLine('mete serve --violations postgres://mete@HOST/DATABASE'),
		h('p', null, 'or in the settings:'),
		copyLine('violations: postgres://mete@HOST/DATABASE'),
		h('p', null, 'The server creates the table. By default, it stores keys and users as hashes and addresses as networks.'),
		me().features.top && h('p', null, 'To see current denials without a database, open ', h('a', {href: '#/keys'}, 'Keys'), '.')));
}
