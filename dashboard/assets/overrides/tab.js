// SPDX-License-Identifier: Apache-2.0

import {h, replace, show} from '../ui/dom.js';
import {dateTime} from '../ui/format.js';
import {keyed} from '../ui/keyed.js';
import {get, serverNow} from '../shell/api.js';
import {may, me} from '../shell/session.js';
import {actionOf} from '../shell/vocabulary.js';
import {endOverride, mayEnd, mayOperate, once} from './actions.js';
import {addOverride} from './add.js';
import {auditList} from './audit.js';
import {ruleList} from '../rules/list.js';
import {keyHref, waitText} from '../keys/table.js';
import {limitText, whomText} from './words.js';

const EVERY = 5000; // ms between requests
const AUDIT = 50; // entries

const states = {in_force: 'active', unfit: 'does not fit the policy', expired: 'expired'};

// overridesTab lists the overrides and their history.
export function overridesTab(root) {
	if (!me().features.overrides) {
		replace(root, h('div', {class: 'empty card'}, h('h2', null, 'This server has no overrides'),
			h('p', null, 'To use overrides in your own program, pass a manager of package overrides to the API.')));
		return undefined;
	}
	let ended = false;
	let timer = 0;
	let all = null;
	const filter = h('input', {type: 'search', class: 'input', placeholder: 'Filter by key, rule, author or reason', 'aria-label': 'Filter overrides', oninput: () => draw()});
	const only = h('input', {type: 'checkbox', checked: true, onchange: () => draw()});
	const why = mayOperate();
	const add = h('button', {type: 'button', class: 'btn btn-primary', 'aria-disabled': why ? 'true' : null, 'aria-describedby': why ? 'add-why' : null,
		onclick: once(async () => why || addOverride(await ruleList(), look))}, 'Add an override');
	const note = h('p', {class: 'keys-note', role: 'status'});
	const body = h('tbody', {role: 'rowgroup'});
	const rows = keyed(body, {id: (o) => o.id, make: (o) => ({node: row(o, look)})});
	const full = table(body);
	const empty = h('div', {class: 'empty', hidden: true});
	const passing = h('p', {class: 'hint overrides-note', hidden: true}, 'Overrides are lost on restart, because the store is in memory.');
	const list = h('div', {class: 'card card-flush overrides-place'}, full, empty, passing);
	const acts = auditList('No changes yet.');
	const audit = h('section', {class: 'card', 'aria-labelledby': 'audit-head', hidden: true},
		h('div', {class: 'card-head'}, h('h2', {id: 'audit-head'}, 'Recent changes')), acts.node);
	full.hidden = true;
	replace(root, h('div', {class: 'toolbar'}, h('div', {class: 'toolbar-filter'}, filter), h('label', {class: 'check'}, only, 'Active only'),
		h('span', {class: 'spread'}), why && h('span', {class: 'hint', id: 'add-why'}, why), add), list, note, audit);

	const look = async () => {
		clearTimeout(timer);
		if (ended || document.hidden) {
			return;
		}
		try {
			const answer = await get(`v1/overrides?audit=${AUDIT}`);
			if (ended) {
				return;
			}
			note.textContent = '';
			all = answer;
			draw();
		} catch (err) {
			note.textContent = err.detail ?? 'The server does not respond. The list is out of date.';
		}
		clearTimeout(timer); // set by a concurrent look
		timer = ended ? 0 : setTimeout(look, EVERY);
	};
	const draw = () => {
		if (!all) return; // no response yet
		const text = filter.value.trim().toLowerCase();
		const shown = all.overrides.filter((o) => (!only.checked || o.state === 'in_force') && (!text || words(o).includes(text)));
		rows(shown);
		full.hidden = shown.length === 0;
		empty.hidden = !full.hidden;
		empty.hidden || replace(empty, none(all, text));
		passing.hidden = all.persistent;
		audit.hidden = false;
		acts.update(all.audit);
	};
	const tick = setInterval(() => {
		for (const node of list.querySelectorAll('[data-ends]')) {
			const left = `${waitText(Number(node.dataset.ends), serverNow())}`;
			const said = left === 'now' ? 'expired' : `in ${left}`;
			if (node.textContent !== said) {
				node.textContent = said;
			}
		}
	}, 1000);
	const onVisible = () => document.hidden || look();
	document.addEventListener('visibilitychange', onVisible);
	look();
	return () => {
		ended = true;
		clearTimeout(timer);
		clearInterval(tick);
		document.removeEventListener('visibilitychange', onVisible);
	};
}

function words(o) {
	return [o.id, o.action, whomText(o), o.reason, o.author].join('\n').toLowerCase();
}

function none(all, text) {
	const expired = all.overrides.length > 0;
	return [h('h2', null, text ? 'No override matches the filter' : 'No active overrides'),
		h('p', null, text || expired ? 'To see expired overrides, clear “Active only”.' :
			'The policy applies to all clients. An override blocks a client, allows it or changes its limit for a time.')];
}

function table(body) {
	return h('div', {class: 'table-wrap'}, h('table', {class: 'table overrides-table', role: 'table'},
		h('caption', {class: 'visually-hidden'}, 'Overrides'),
		h('thead', {role: 'rowgroup'}, h('tr', {role: 'row'}, ['Effect', 'Applies to', 'Reason', 'Expires', 'Action'].map((label) =>
			h('th', {scope: 'col', role: 'columnheader'}, label === 'Action' ? h('span', {class: 'visually-hidden'}, label) : label)))),
		body));
}

function row(o, done) {
	const ends = Date.parse(o.expires_at);
	const why = o.source === 'file' ? 'it is in the policy file; remove it there' : mayEnd(o);
	const limit = limitText(o);
	const cell = (label, ...children) => h('td', {role: 'cell', dataset: {label}}, ...children);
	return h('tr', {role: 'row', class: o.state === 'in_force' ? null : 'over'},
		cell('Effect', h('span', {class: `badge badge-${actionOf(o.action).color}`}, show(actionOf(o.action).label)), limit && h('p', {class: 'small'}, show(limit))),
		cell('Applies to', h('p', {class: 'mono overrides-whom'}, o.key && may('operate') ? h('a', {href: keyHref(o)}, show(whomText(o), 300)) : show(whomText(o), 300)), h('p', {class: 'small muted'}, show(o.id, 60), o.source === 'file' ? ' · policy file' : o.source === 'local' ? ' · this server alone' : ''),
			(o.mistakes ?? []).map((m) => h('p', {class: 'mistake'}, show(m.detail, 300)))),
		cell('Reason', h('p', null, show(o.reason, 300)), h('p', {class: 'small muted'}, show(o.author, 60))),
		cell('Expires', o.state === 'in_force' ?
			[h('span', {class: 'nowrap', dataset: {ends: String(ends)}}, `in ${waitText(ends, serverNow())}`), h('p', {class: 'small muted'}, dateTime(o.expires_at))] :
			h('span', {class: 'badge'}, states[o.state] ?? show(o.state))),
		cell('', o.state === 'expired' ? null : h('button', {
			type: 'button', class: 'btn btn-small', 'aria-disabled': why ? 'true' : null, title: why || null,
			'aria-label': `End ${show(o.id, 60)}${why ? `: ${why}` : ''}`, onclick: () => why || endOverride(o, done),
		}, 'End')));
}
