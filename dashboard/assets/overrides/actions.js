// SPDX-License-Identifier: Apache-2.0

// What operators do to a key: reset, block, let through, another limit, and the end of
// an override. Each says in words what will happen and to whom, asks for a reason, and
// can be undone. A target is {key, rule, limit, parts, masked, cut} and, for another
// limit, what is known of the one in force: {algorithm, refill, tokens, per, capacity}.

import {h, keyNode, keyText, show} from '../ui/dom.js';
import {dateTime, tokens} from '../ui/format.js';
import {del, get, post, put, serverNow} from '../shell/api.js';
import {confirmAction, toast} from '../shell/dialog.js';
import {may, me} from '../shell/session.js';
import {actionOf} from '../shell/vocabulary.js';
import {pointAt} from '../key/level.js';
import {ruleList} from '../rules/list.js';
import {expiryOf, keptOf, keptWords, limitOverride, limitShape, limitWords} from './form.js';
import {expiryInput, limitInputs} from './inputs.js';
import {bodyOf, inForce, limitText, whomText} from './words.js';

const NEEDS = 'needs role operate; sign in';
const AUTHOR = 'mete-author'; // where a browser remembers who somebody said they are

// mayOperate says why the viewer may not act, "" where they may.
export function mayOperate() {
	return may('operate') ? '' : NEEDS;
}

// mayEnd says why the viewer may not end an override: it takes what it took to make it.
export function mayEnd(o) {
	return actionOf(o.action).suspends && !may('configure') ? 'needs role configure; sign in' : mayOperate();
}

// whyNot says why nothing can be done to a key, "" where something can.
export function whyNot(target) {
	if (target.masked) {
		return NEEDS;
	}
	return mayOperate() || (target.cut ? 'the key is so long that only its beginning is known' : '');
}

// resetKey makes a bucket full. done is called when it is so, and after an undo.
export async function resetKey(target, done) {
	await confirmed({
		title: 'Reset this bucket?',
		body: [about(target), h('p', null, 'It becomes full at once: ', h('strong', null, target.capacity === undefined ? 'all of its tokens' : `${tokens(target.capacity)} tokens`),
			' are there for the next requests. Nobody else is touched. Another server may deny for a second more what it has just denied.')],
		confirm: 'Reset',
		fields: [reasonField('what it is made full for')],
		run: async ({reason}) => {
			const answer = await post('v1/bucket/reset', {key: target.key, reason});
			const given = Number(answer.given);
			const at = performance.now();
			toast({
				text: `Reset ${keyText(target.parts)}: ${given > 0 ? `${tokens(given)} ${given === 1 ? 'token' : 'tokens'} given back` : 'it was full already'}.`,
				kind: 'ok',
				// What would have come back meanwhile stays: nobody is left with less than
				// without the reset.
				undo: given > 0 ? async () => {
					const left = Math.ceil(pointAt(answer.missing, (performance.now() - at) / 1000) * 1000 - 1e-6) / 1000; // as the server rounds
					if (left > 0) {
						await post('v1/bucket/take', {key: target.key, tokens: left, reason: 'undo'});
					}
					done?.();
				} : null,
			});
			done?.();
		},
	});
}

// blockKey denies whatever would spend from a bucket.
export function blockKey(target, done) {
	return override(target, done, {
		action: 'block', title: 'Block this key?', confirm: 'Block key', danger: true,
		words: [h('p', null, 'Every request that would spend from this bucket is ', h('strong', {class: 'denied'}, 'denied'),
			', whatever the rules say and however full it is, until the block ends. Clients are told to retry when it ends.')],
		make: () => ({action: 'block', key: target.key}),
		toldOf: () => `Blocked ${keyText(target.parts)}`,
	});
}

// allowKey lets pass whatever would spend from a bucket.
export function allowKey(target, done) {
	return override(target, done, {
		action: 'allow', title: 'Let this key through?', confirm: 'Let through',
		words: [h('p', null, 'Requests that would spend from this bucket pass rule ', h('strong', null, show(target.rule, 64)), ' ',
			h('strong', {class: 'allowed'}, 'uncharged'), ' until then. Other rules still hold for them.')],
		make: () => ({action: 'allow', key: target.key}),
		toldOf: () => `Let through ${keyText(target.parts)}`,
	});
}

// limitKey holds one key to another limit.
export async function limitKey(shown, done) {
	const b = await get(`v1/bucket?${new URLSearchParams({key: shown.key})}`);
	const target = {...shown, ...b, tokens: b.rate.tokens, per: b.rate.per};
	target.kept = keptOf(target, await ruleList(target.rule));
	const inputs = limitInputs(target);
	return override(target, done, {
		action: 'limit', title: 'Another limit for this key?', confirm: 'Set limit',
		words: [h('p', null, 'For this key alone, this takes the place of the limit ', h('strong', null, show(target.limit, 64)),
			target.words ? ` (${target.words})` : '', '. What is missing from the bucket stays missing.', keptWords(target.kept)), inputs.node],
		make: () => ({action: 'limit', key: target.key, rules: [target.rule], ...limitOverride(target, inputs.values())}),
		toldOf: () => `Other limit set: ${limitWords(target, inputs.values())}`,
	});
}

// override asks, and makes an override of a key. Where one of the same kind is there
// for just this key, the new one takes its place, and undo puts the old one back.
async function override(target, done, {action, title, confirm, danger, words, make, toldOf}) {
	const before = await sameKind(target, action);
	const body = [about(target), ...words];
	if (before) {
		body.push(h('p', {class: 'notice'}, `It takes the place of ${show(before.id, 60)}, which ${show(before.author, 60)} made (“${show(before.reason, 120)}”).`));
	}
	await askOverride({title, confirm, danger, body, make: () => inPlaceOf(before, make()), toldOf, before, done});
}

// inPlaceOf is an override that takes the place of one, of which it keeps the limits that
// it does not name: of several overrides of a key only the first one's hold.
function inPlaceOf(before, body) {
	if (!before) {
		return body;
	}
	const named = new Set(body.limits?.map((l) => l.name));
	const kept = body.limits && before.limits ? {limits: [...before.limits.filter((l) => !named.has(l.name)), ...body.limits]} : {};
	return {...body, ...kept, id: before.id};
}

// askOverride asks for how long, why and who, and makes an override.
export function askOverride({title, confirm, danger, body, make, toldOf, before = null, done}) {
	const expiry = expiryInput();
	return confirmed({
		title, confirm, danger, body: [...body, expiry.node],
		fields: [reasonField('Clients do not see it; people ask later.'), authorField()],
		run: async ({reason, author}) => {
			remember(author);
			const made = await put('v1/overrides', {...make(), reason: reason.trim(), author: author.trim(), expires_at: expiryOf(expiry.value(), serverNow())});
			toast({text: `${toldOf(made)}, until ${dateTime(made.expires_at)}.`, kind: 'ok', undo: async () => {
				await restore(made, before);
				done?.();
			}});
			done?.();
		},
	});
}

// restore undoes the making of an override.
async function restore(made, before) {
	const {overrides} = await get('v1/overrides?audit=0');
	const now = overrides.find((o) => o.id === made.id);
	if (!now || JSON.stringify(bodyOf(now)) !== JSON.stringify(bodyOf(made))) {
		throw new Error('Somebody has ended or changed it since.');
	}
	if (before && inForce(before, serverNow())) {
		await put('v1/overrides', bodyOf(before));
		return;
	}
	await del(`v1/overrides/${encodeURIComponent(made.id)}?${new URLSearchParams({author: made.author, reason: 'undo'})}`);
}

// endOverride ends an override that was made at run time.
export async function endOverride(o, done) {
	await confirmed({
		title: 'End this override?',
		body: [h('dl', {class: 'facts'},
			h('dt', null, 'Does'), h('dd', null, show(actionOf(o.action).label), limitText(o) ? `: ${show(limitText(o))}` : ''),
			h('dt', null, 'To'), h('dd', {class: 'mono'}, show(whomText(o), 300)),
			h('dt', null, 'Because'), h('dd', null, `${show(o.reason)} (${show(o.author, 60)})`)),
		h('p', null, 'The policy holds for them again, at once.')],
		confirm: 'End it',
		fields: [reasonField('why it is over'), authorField()],
		run: async (values) => {
			remember(values.author);
			await del(`v1/overrides/${encodeURIComponent(o.id)}?${new URLSearchParams({author: values.author.trim(), reason: values.reason.trim()})}`);
			toast({text: `${show(o.id, 60)} has ended.`, kind: 'ok', undo: inForce(o, serverNow()) ? async () => {
				await put('v1/overrides', bodyOf(o));
				done?.();
			} : null});
			done?.();
		},
	});
}

// sameKind is the override of that kind which is in force for just this key, if any.
async function sameKind(target, action) {
	const {overrides} = await get(`v1/overrides?${new URLSearchParams({audit: 0, key: target.key})}`);
	return overrides.find((o) => o.source === 'admin' && o.action === action && inForce(o, serverNow()) && o.about === 'key') ?? null;
}

// keyActions are the buttons of all that can be done to a key. Where the viewer may not,
// they say so. targetOf is asked when one is pressed: what a bucket is may change.
export function keyActions(targetOf, done) {
	const first = targetOf();
	const all = [
		['Reset', 'Makes the bucket full', resetKey, ''],
		['Other limit', 'Another rate and capacity, for a time', limitKey, ''],
		['Let through', 'Passes this rule uncharged, for a time', allowKey, ''],
		['Block', 'Denies everything, for a time', blockKey, 'btn-danger'],
	];
	const reason = whyNot(first);
	const press = (why, act) => once(() => why || tried(act(targetOf(), done)));
	return h('ul', {class: 'key-actions plain'}, all.map(([label, hint, act, look], i) => {
		const why = reason || (act === limitKey && !limitShape(first.algorithm) ? 'this algorithm has no limit to change here' : '');
		const id = `key-action-${i}`;
		return h('li', {class: 'key-action'},
			h('button', {type: 'button', class: `btn ${why ? '' : look}`, 'aria-describedby': id, 'aria-disabled': why ? 'true' : null, onclick: press(why, act)}, label),
			h('span', {class: 'hint', id}, why || hint));
	}));
}

// once is an action that is not begun again while it goes on: a dialog may need an answer
// of the server before it opens.
export function once(action) {
	let busy = false;
	return async () => {
		if (busy) return;
		busy = true;
		try {
			await action();
		} finally {
			busy = false;
		}
	};
}

// tried says what went wrong before a dialog could.
async function tried(action) {
	try {
		await action;
	} catch (err) {
		toast({text: err.message, kind: 'bad'});
	}
}

// confirmed asks, and does it while the dialog is open: what goes wrong is said there.
function confirmed({run, ...question}) {
	return confirmAction({...question, check: async (values) => {
		try {
			await run(values);
			return null;
		} catch (err) {
			return mistakesOf(err);
		}
	}});
}

// mistakesOf are the server's words, at the fields that they are about.
function mistakesOf(err) {
	const said = {};
	const rest = [];
	for (const {pointer, detail, hint} of err.mistakes ?? []) {
		const text = hint ? `${detail}: ${hint}` : detail;
		const name = pointer.slice(1);
		if (name === 'reason' || name === 'author') {
			said[name] = text;
		} else {
			rest.push(text);
		}
	}
	if (rest.length > 0) {
		return rest.join(' ');
	}
	return Object.keys(said).length > 0 ? said : err.message;
}

function about(target) {
	return h('p', {class: 'action-target'}, keyNode(target.parts), h('span', {class: 'muted'}, `limit ${show(target.limit, 64)}`));
}

function reasonField(hint) {
	return {name: 'reason', label: 'Reason', required: true, hint};
}

function authorField() {
	return {name: 'author', label: 'Your name', required: true, value: remembered() || me().name, hint: 'Whom to ask about it.'};
}

// remembered is the name that somebody gave last: a token is often shared, and its name
// is then nobody's.
function remembered() {
	try {
		return localStorage.getItem(AUTHOR) ?? '';
	} catch {
		return ''; // without storage it is asked each time
	}
}

function remember(name) {
	try {
		localStorage.setItem(AUTHOR, name.trim());
	} catch {
		// as above
	}
}
