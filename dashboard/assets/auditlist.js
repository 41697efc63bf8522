// SPDX-License-Identifier: Apache-2.0

import {h, show} from './ui/dom.js';
import {ago, dateTime} from './ui/format.js';
import {actionWords, limitText, whomText} from './overridewords.js';

const what = {made: 'made', removed: 'ended', expired: 'expired'};

// auditList shows what was done to overrides, the latest first.
export function auditList(entries, empty) {
	if (entries.length === 0) {
		return h('p', {class: 'muted'}, empty);
	}
	return h('ol', {class: 'audit plain'}, entries.toReversed().map(auditEntry));
}

function auditEntry(entry) {
	const o = entry.after ?? entry.before ?? {};
	const limit = limitText(o);
	const replaced = entry.what === 'made' && entry.before;
	return h('li', {class: `audit-entry audit-${entry.what}`},
		h('span', {class: 'audit-mark', 'aria-hidden': 'true'}),
		h('p', {class: 'audit-what'},
			h('strong', null, `${actionWords[o.action] ?? 'Override'} ${replaced ? 'replaced' : what[entry.what] ?? entry.what}`),
			limit ? ` · ${show(limit)}` : '', entry.what === 'made' && o.expires_at ? ` · until ${dateTime(o.expires_at)}` : ''),
		h('p', {class: 'audit-whom mono'}, show(whomText(o), 200)),
		h('p', {class: 'audit-who'}, entry.author ? `${show(entry.author, 60)}: ` : '', h('q', null, show(entry.reason)), ' · ',
			h('time', {datetime: entry.at, title: dateTime(entry.at)}, ago(entry.at))));
}
