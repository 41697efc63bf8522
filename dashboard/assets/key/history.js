// SPDX-License-Identifier: Apache-2.0

import {h, replace, show} from '../ui/dom.js';
import {dateTime} from '../ui/format.js';
import {keyed} from '../ui/keyed.js';
import {get, serverNow} from '../shell/api.js';
import {me} from '../shell/session.js';
import {actionOf} from '../shell/vocabulary.js';
import {endOverride, mayEnd} from '../overrides/actions.js';
import {auditList} from '../overrides/audit.js';
import {inForce, limitText, whomText} from '../overrides/words.js';

const EVERY = 10000; // ms between requests, because other servers and users change overrides
const AUDIT = 50; // entries
const SAME = 10000; // ms within which an audit entry and an activity entry are the same act
const acted = {reset: 'bucket/reset', taken: 'bucket/take'};

let known = true; // whether the server has v1/activity; an embedding program may not

const scope = {key: 'only this key', match: 'this key and others', all: 'all clients'};

// keyHistory shows the overrides that apply to a key, and its past changes.
export function keyHistory(target) {
	const node = h('div', {class: 'stack'});
	let timer = 0;
	let ended = false;
	let shown = null;
	const look = async () => {
		clearTimeout(timer);
		if (ended || !me().features.overrides) {
			return;
		}
		if (document.hidden) {
			timer = setTimeout(look, EVERY);
			return;
		}
		if (target.masked || !me().see_keys) {
			replace(node, heading('Overrides'), h('p', {class: 'muted'}, 'Targets of overrides are masked. To see the overrides of this key, you need the role operate.'));
			return;
		}
		try {
			const [answer, acts] = await Promise.all([get(`v1/overrides?${new URLSearchParams({audit: AUDIT, key: target.key})}`), lately(target.key)]);
			answer.acts = acts.activity.filter((a) => a.status < 400 || a.status === 503);
			if (!ended) {
				shown ??= lists(node, target, look);
				shown(answer);
			}
		} catch {
			// Keep the old list: the stream reports that the server is unreachable.
		}
		clearTimeout(timer); // set by a concurrent look
		timer = ended ? 0 : setTimeout(look, EVERY);
	};
	return {
		node,
		look,
		close() {
			ended = true;
			clearTimeout(timer);
		},
	};
}

// lately returns the past changes of a key, except overrides.
async function lately(key) {
	try {
		if (known) return await get(`v1/activity?${new URLSearchParams({key})}`);
	} catch (err) {
		known = err.status !== 404;
	}
	return {activity: []};
}

function heading(text) {
	return h('div', {class: 'card-head'}, h('h2', null, text));
}

// lists fills node with the active overrides and the history. It returns a function that updates
// them in place, so that an End button keeps its position.
function lists(node, target, done) {
	const none = h('p', {class: 'muted'}, 'None. The policy applies to this key.');
	const list = h('ul', {class: 'plain stack-small'});
	const items = keyed(list, {id: ({o}) => o.id, make: ({o, how}) => ({node: overrideItem(o, how, done)})});
	const audit = auditList(known ? 'No recent changes to this key.' : 'No recent overrides of this key. This server does not record resets.');
	replace(node, h('div', null, heading('Active overrides'), none, list), h('div', null, heading('Recent changes'), audit.node));
	return (answer) => {
		const here = answer.overrides.filter((o) => inForce(o, serverNow())).map((o) => ({o, how: o.about}));
		none.hidden = here.length > 0;
		list.hidden = !none.hidden;
		items(here);
		audit.update([...answer.audit, ...answer.acts.filter((a) => !answer.audit.some((e) => isOf(e, a)))]);
	};
}

// isOf reports whether an audit entry records an act; the server that performed it lists both.
function isOf(entry, act) {
	return act.status < 400 && acted[entry.what] === act.what && entry.reason === (act.reason ?? '') && Math.abs(Date.parse(entry.at) - Date.parse(act.at)) < SAME;
}

function overrideItem(o, how, done) {
	const why = o.source === 'file' ? 'it is in the policy file' : mayEnd(o);
	const limit = limitText(o);
	return h('li', {class: 'override-item'},
		h('div', null, h('p', null, h('strong', null, show(actionOf(o.action).label)), limit ? ` · ${show(limit)}` : '', h('span', {class: 'muted'}, ` · ${scope[how]}`)),
			how === 'key' ? null : h('p', {class: 'mono small'}, show(whomText(o), 200)),
			h('p', {class: 'small muted'}, `${show(o.author, 60)}: `, h('q', null, show(o.reason)), ` · until ${dateTime(o.expires_at)}`)),
		h('button', {type: 'button', class: 'btn btn-small', 'aria-disabled': why ? 'true' : null, title: why || null,
			'aria-label': `End ${show(o.id, 60)}${why ? `: ${why}` : ''}`, onclick: () => why || endOverride(o, done)}, 'End'));
}
