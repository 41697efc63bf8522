// SPDX-License-Identifier: Apache-2.0

import {h, show} from '../ui/dom.js';
import {ago, dateTime} from '../ui/format.js';
import {keyed} from '../ui/keyed.js';
import {actionOf} from '../shell/vocabulary.js';
import {limitText, whomText} from './words.js';

const what = {made: 'made', removed: 'ended', expired: 'expired'};
const acts = {'bucket/reset': 'Reset', 'bucket/take': 'Reset undone', 'rules/reset': 'Rule reset'};

// auditList returns {node, update(entries)}: a list of audit and activity entries, newest first.
export function auditList(empty) {
	const none = h('p', {class: 'muted'}, empty);
	const list = h('ol', {class: 'audit plain', hidden: true});
	const items = keyed(list, {id: JSON.stringify, make: (e) => ({node: e.override === undefined ? actEntry(e) : e.rule ? ruleEntry(e) : e.key ? bucketEntry(e) : auditEntry(e)})});
	return {node: h('div', null, none, list), update(entries) {
		none.hidden = entries.length > 0;
		list.hidden = !none.hidden;
		items(entries.toSorted((a, b) => Date.parse(b.at) - Date.parse(a.at)));
		for (const time of list.querySelectorAll('time')) {
			const said = ago(time.dateTime);
			if (time.textContent !== said) {
				time.textContent = said;
			}
		}
	}};
}

// bucketEntry shows a change of a bucket from the audit log.
function bucketEntry(entry) {
	const node = actEntry({...entry, what: entry.what === 'taken' ? 'bucket/take' : 'bucket/reset', by: entry.author});
	const amount = entry.tokens === undefined ? '' : ` · ${entry.tokens} ${entry.tokens === 1 ? 'token' : 'tokens'}`;
	node.querySelector('.audit-what').append(amount);
	node.querySelector('.audit-who').before(h('p', {class: 'audit-whom mono'}, show(entry.key, 200)));
	return node;
}

// ruleEntry shows a reset of a whole rule from the audit log.
function ruleEntry(entry) {
	const node = actEntry({...entry, what: 'rules/reset', by: entry.author});
	node.querySelector('.audit-what').append(` · ${entry.rule} · ${entry.buckets ?? 0} ${entry.buckets === 1 ? 'bucket' : 'buckets'}`);
	return node;
}

// actEntry shows a change of a bucket. A take that is not an undo was made by hand.
function actEntry(act) {
	const name = act.what === 'bucket/take' && act.reason !== 'undo' ? 'Tokens taken' : acts[act.what] ?? act.what;
	const unsure = act.status === 503 ? ' · result unknown: the store did not respond' : '';
	return h('li', {class: 'audit-entry'}, h('span', {class: 'audit-mark', 'aria-hidden': 'true'}), h('p', {class: 'audit-what'}, h('strong', null, show(name)), unsure),
		whoNode(act.by || act.from, act.reason, act.at));
}

function whoNode(who, why, at) {
	return h('p', {class: 'audit-who'}, who ? show(who, 60) : 'unknown', why ? [': ', h('q', null, show(why))] : '', ' · ', h('time', {datetime: at, title: dateTime(at)}, ago(at)));
}

function auditEntry(entry) {
	const o = entry.after ?? entry.before ?? {};
	const limit = limitText(o);
	const replaced = entry.what === 'made' && entry.before;
	return h('li', {class: `audit-entry audit-${entry.what}`},
		h('span', {class: 'audit-mark', 'aria-hidden': 'true'}),
		h('p', {class: 'audit-what'},
			h('strong', null, `${o.action ? actionOf(o.action).label : 'Override'} ${replaced ? 'replaced' : what[entry.what] ?? entry.what}`),
			limit ? ` · ${show(limit)}` : '', entry.what === 'made' && o.expires_at ? ` · until ${dateTime(o.expires_at)}` : ''),
		h('p', {class: 'audit-whom mono'}, show(whomText(o), 200)),
		whoNode(entry.author, entry.reason, entry.at));
}
