// SPDX-License-Identifier: Apache-2.0

import {h, replace, show} from '../ui/dom.js';
import {dateTime} from '../ui/format.js';
import {get, serverNow} from '../shell/api.js';
import {me} from '../shell/session.js';
import {endOverride, mayOperate} from '../overrides/actions.js';
import {auditList} from '../overrides/audit.js';
import {aboutKey, actionWords, inForce, limitText, untagged, whomText} from '../overrides/words.js';

const EVERY = 10000; // ms between looks: others change overrides, too
const AUDIT = 50; // entries

let known = true; // whether the server says what administrators did: that of a program may not

const scope = {key: 'just this key', match: 'this key among others', all: 'everybody'};

// keyHistory shows the overrides that a key falls under, and what was done to it.
export function keyHistory(target) {
	const node = h('div', {class: 'stack'});
	let timer = 0;
	let ended = false;
	let before = '';
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
			const [answer, acts] = await Promise.all([get(`v1/overrides?audit=${AUDIT}`), lately()]);
			answer.acts = acts.activity.filter((a) => untagged(a.key ?? '') === untagged(target.key) && (a.status < 400 || a.status === 503));
			const text = JSON.stringify(answer);
			if (!ended && text !== before) {
				before = text;
				draw(node, target, answer, look);
			}
		} catch {
			// What stands there stays: the stream says that the server is away.
		}
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

// lately is what was done beside overrides.
async function lately() {
	try {
		if (known) return await get('v1/activity');
	} catch (err) {
		known = err.status !== 404;
	}
	return {activity: []};
}

function heading(text) {
	return h('div', {class: 'card-head'}, h('h2', null, text));
}

function draw(node, target, answer, done) {
	const here = answer.overrides.filter((o) => inForce(o, serverNow())).map((o) => [o, aboutKey(o, target)]).filter(([, how]) => how);
	const audit = answer.audit.filter((e) => [e.after, e.before].some((o) => o && aboutKey(o, target)));
	replace(node,
		h('div', null, heading('Overrides in force'), here.length === 0 ? h('p', {class: 'muted'}, 'None: the policy holds for this key.') :
			h('ul', {class: 'plain stack-small'}, here.map(([o, how]) => overrideItem(o, how, done)))),
		h('div', null, heading('What was done'), auditList([...audit, ...answer.acts], known ? 'Nothing was done to this key lately.' : 'No override of this key was made lately. Resets are not kept here.')));
}

function overrideItem(o, how, done) {
	const why = o.source === 'file' ? 'it is in the policy file' : mayOperate();
	const limit = limitText(o);
	return h('li', {class: 'override-item'},
		h('div', null, h('p', null, h('strong', null, actionWords[o.action] ?? show(o.action)), limit ? ` · ${show(limit)}` : '', h('span', {class: 'muted'}, ` · ${scope[how]}`)),
			how === 'key' ? null : h('p', {class: 'mono small'}, show(whomText(o), 200)),
			h('p', {class: 'small muted'}, `${show(o.author, 60)}: `, h('q', null, show(o.reason)), ` · until ${dateTime(o.expires_at)}`)),
		h('button', {type: 'button', class: 'btn btn-small', 'aria-disabled': why ? 'true' : null, title: why || null,
			'aria-label': `End ${show(o.id, 60)}${why ? `: ${why}` : ''}`, onclick: () => why || endOverride(o, done)}, 'End'));
}
