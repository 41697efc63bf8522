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

const EVERY = 10000; // ms between looks: others change overrides, too
const AUDIT = 50; // entries
const SAME = 10000; // ms at most between what is noted of an act in two places
const acted = {reset: 'bucket/reset', taken: 'bucket/take'};

let known = true; // whether the server says what administrators did: that of a program may not

const scope = {key: 'just this key', match: 'this key among others', all: 'everybody'};

// keyHistory shows the overrides that a key falls under, and what was done to it.
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
			replace(node, heading('Overrides'), h('p', {class: 'muted'}, 'Whom overrides are about is masked. To see those of this key takes the role operate.'));
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
			// What stands there stays: the stream says that the server is away.
		}
		clearTimeout(timer); // of a look that was begun meanwhile
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

// lately is what was done to a key beside overrides.
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

// lists puts what is in force and what was done into node, and returns what shows an
// answer there: an End that is about to be pressed is not replaced.
function lists(node, target, done) {
	const none = h('p', {class: 'muted'}, 'None: the policy holds for this key.');
	const list = h('ul', {class: 'plain stack-small'});
	const items = keyed(list, {id: ({o}) => o.id, make: ({o, how}) => ({node: overrideItem(o, how, done)})});
	const audit = auditList(known ? 'Nothing was done to this key lately.' : 'No override of this key was made lately. Resets are not kept here.');
	replace(node, h('div', null, heading('Overrides in force'), none, list), h('div', null, heading('What was done'), audit.node));
	return (answer) => {
		const here = answer.overrides.filter((o) => inForce(o, serverNow())).map((o) => ({o, how: o.about}));
		none.hidden = here.length > 0;
		list.hidden = !none.hidden;
		items(here);
		audit.update([...answer.audit, ...answer.acts.filter((a) => !answer.audit.some((e) => isOf(e, a)))]);
	};
}

// isOf reports whether an entry of the audit is of an act: the server that did it has both.
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
