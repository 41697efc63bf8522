// SPDX-License-Identifier: Apache-2.0

// The operator's actions on a key: reset, block, let through, change the limit, and end an
// override. Each action describes its effect, asks for a reason, and can be undone. A target is
// {key, rule, limit, parts, masked, cut}. To change a limit, it also has the known parts of the
// active limit: {algorithm, refill, tokens, per, capacity}.

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

const NEEDS = 'requires the role operate; sign in';
const AUTHOR = 'mete-author'; // key in localStorage for the viewer's name

// mayOperate returns why the viewer may not act, or "".
export function mayOperate() {
	return may('operate') ? '' : NEEDS;
}

// mayEnd returns why the viewer may not end an override, or "". Ending requires the same role as making.
export function mayEnd(o) {
	return actionOf(o.action).suspends && !may('configure') ? 'requires the role configure; sign in' : mayOperate();
}

// whyNot returns why the viewer cannot change a key, or "".
export function whyNot(target) {
	if (target.masked) {
		return NEEDS;
	}
	return mayOperate() || (target.cut ? 'only the beginning of this long key is known' : '');
}

// resetKey fills a bucket. It calls done afterwards and after an undo.
export async function resetKey(target, done) {
	await confirmAndRun({
		title: 'Reset this bucket?',
		body: [targetNode(target), h('p', null, 'The bucket becomes full at once, with ', h('strong', null, target.capacity === undefined ? 'all of its tokens' : `${tokens(target.capacity)} tokens`),
			' for the next requests. No other key changes. Other servers may repeat a recent denial for up to a second.')],
		confirm: 'Reset',
		fields: [reasonField('Why the bucket is reset.')],
		run: async ({reason}) => {
			const answer = await post('v1/bucket/reset', {key: target.key, reason});
			const given = Number(answer.given);
			const at = performance.now();
			toast({
				text: `Reset ${keyText(target.parts)}: ${given > 0 ? `${tokens(given)} ${given === 1 ? 'token' : 'tokens'} added` : 'it was already full'}.`,
				kind: 'ok',
				// Keep the tokens that would have refilled since the reset, so that the client never has less than
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

// blockKey denies all requests that would spend from a bucket.
export function blockKey(target, done) {
	return override(target, done, {
		action: 'block', title: 'Block this key?', confirm: 'Block key', danger: true,
		words: [h('p', null, 'Every request that would spend from this bucket is ', h('strong', {class: 'denied'}, 'denied'),
			', regardless of the rules and its level, until the block ends. Retry-After tells clients when it ends.')],
		make: () => ({action: 'block', key: target.key}),
		toldOf: () => `Blocked ${keyText(target.parts)}`,
	});
}

// allowKey allows all requests that would spend from a bucket.
export function allowKey(target, done) {
	return override(target, done, {
		action: 'allow', title: 'Let this key through?', confirm: 'Let through',
		words: [h('p', null, 'Requests that would spend from this bucket pass rule ', h('strong', null, show(target.rule, 64)), ' ',
			h('strong', {class: 'allowed'}, 'uncharged'), ' until then. Other rules still apply.')],
		make: () => ({action: 'allow', key: target.key}),
		toldOf: () => `Let through ${keyText(target.parts)}`,
	});
}

// limitKey changes the limit of a key.
export async function limitKey(shown, done) {
	const b = await get(`v1/bucket?${new URLSearchParams({key: shown.key})}`);
	const target = {...shown, ...b, tokens: b.rate.tokens, per: b.rate.per};
	target.kept = keptOf(target, await ruleList(target.rule));
	const inputs = limitInputs(target);
	return override(target, done, {
		action: 'limit', title: 'Change the limit of this key?', confirm: 'Set limit',
		words: [h('p', null, 'For this key only, this replaces the limit ', h('strong', null, show(target.limit, 64)),
			target.words ? ` (${target.words})` : '', '. Spent tokens stay spent.', keptWords(target.kept)), inputs.node],
		make: () => ({action: 'limit', key: target.key, rules: [target.rule], ...limitOverride(target, inputs.values())}),
		toldOf: () => `Limit changed: ${limitWords(target, inputs.values())}`,
	});
}

// override asks for confirmation and makes an override of a key. It replaces an override of the
// same kind for only this key; undo restores the replaced override.
async function override(target, done, {action, title, confirm, danger, words, make, toldOf}) {
	const before = await findSameKind(target, action);
	const body = [targetNode(target), ...words];
	if (before) {
		body.push(h('p', {class: 'notice'}, `This replaces ${show(before.id, 60)} by ${show(before.author, 60)} (“${show(before.reason, 120)}”).`));
	}
	await askOverride({title, confirm, danger, body, make: () => replacementFor(before, make()), toldOf, before, done});
}

// replacementFor returns the override that replaces before. It keeps the limits of before that it does not
// name, because only the first of several overrides of a key applies.
function replacementFor(before, body) {
	if (!before) {
		return body;
	}
	const named = new Set(body.limits?.map((l) => l.name));
	const kept = body.limits && before.limits ? {limits: [...before.limits.filter((l) => !named.has(l.name)), ...body.limits]} : {};
	return {...body, ...kept, id: before.id};
}

// askOverride asks for the expiry, reason and author, and makes an override.
export function askOverride({title, confirm, danger, body, make, toldOf, before = null, done}) {
	const expiry = expiryInput();
	return confirmAndRun({
		title, confirm, danger, body: [...body, expiry.node],
		fields: [reasonField('For the audit log. Clients do not see it.'), authorField()],
		run: async ({reason, author}) => {
			saveAuthor(author);
			const made = await put('v1/overrides', {...make(), reason: reason.trim(), author: author.trim(), expires_at: expiryOf(expiry.value(), serverNow())});
			toast({text: `${toldOf(made)}, until ${dateTime(made.expires_at)}.`, kind: 'ok', undo: async () => {
				await undoOverride(made, before);
				done?.();
			}});
			done?.();
		},
	});
}

// undoOverride undoes an override.
async function undoOverride(made, before) {
	const {overrides} = await get('v1/overrides?audit=0');
	const now = overrides.find((o) => o.id === made.id);
	if (!now || JSON.stringify(bodyOf(now)) !== JSON.stringify(bodyOf(made))) {
		throw new Error('The override has been ended or changed since.');
	}
	if (before && inForce(before, serverNow())) {
		await put('v1/overrides', bodyOf(before));
		return;
	}
	await del(`v1/overrides/${encodeURIComponent(made.id)}?${new URLSearchParams({author: made.author, reason: 'undo'})}`);
}

// endOverride ends an override that was made at run time.
export async function endOverride(o, done) {
	await confirmAndRun({
		title: 'End this override?',
		body: [h('dl', {class: 'facts'},
			h('dt', null, 'Effect'), h('dd', null, show(actionOf(o.action).label), limitText(o) ? `: ${show(limitText(o))}` : ''),
			h('dt', null, 'Applies to'), h('dd', {class: 'mono'}, show(whomText(o), 300)),
			h('dt', null, 'Reason'), h('dd', null, `${show(o.reason)} (${show(o.author, 60)})`)),
		h('p', null, 'The policy applies again at once.')],
		confirm: 'End override',
		fields: [reasonField('Why the override ends.'), authorField()],
		run: async (values) => {
			saveAuthor(values.author);
			await del(`v1/overrides/${encodeURIComponent(o.id)}?${new URLSearchParams({author: values.author.trim(), reason: values.reason.trim()})}`);
			toast({text: `${show(o.id, 60)} has ended.`, kind: 'ok', undo: inForce(o, serverNow()) ? async () => {
				await put('v1/overrides', bodyOf(o));
				done?.();
			} : null});
			done?.();
		},
	});
}

// findSameKind returns the active override of the same kind for only this key, or null.
async function findSameKind(target, action) {
	const {overrides} = await get(`v1/overrides?${new URLSearchParams({audit: 0, key: target.key})}`);
	return overrides.find((o) => o.source === 'admin' && o.action === action && inForce(o, serverNow()) && o.about === 'key') ?? null;
}

// keyActions returns the buttons for the actions on a key. Disabled buttons show the reason. targetOf
// returns the current target when a button is pressed.
export function keyActions(targetOf, done) {
	const first = targetOf();
	const all = [
		['Reset', 'Fills the bucket', resetKey, ''],
		['Other limit', 'Changes rate and capacity for a time', limitKey, ''],
		['Let through', 'Allows requests uncharged for a time', allowKey, ''],
		['Block', 'Denies all requests for a time', blockKey, 'btn-danger'],
	];
	const reason = whyNot(first);
	const press = (why, act) => once(() => why || toastErrors(act(targetOf(), done)));
	return h('ul', {class: 'key-actions plain'}, all.map(([label, hint, act, look], i) => {
		const why = reason || (act === limitKey && !limitShape(first.algorithm) ? 'limits of this algorithm cannot be changed here' : '');
		const id = `key-action-${i}`;
		return h('li', {class: 'key-action'},
			h('button', {type: 'button', class: `btn ${why ? '' : look}`, 'aria-describedby': id, 'aria-disabled': why ? 'true' : null, onclick: press(why, act)}, label),
			h('span', {class: 'hint', id}, why || hint));
	}));
}

// once wraps an action so that it does not start again while it runs. A dialog may wait for the server
// before it opens.
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

// toastErrors shows errors from before the dialog opens.
async function toastErrors(action) {
	try {
		await action;
	} catch (err) {
		toast({text: err.message, kind: 'bad'});
	}
}

// confirmAndRun runs the action while the dialog is open, so that the dialog can show errors.
function confirmAndRun({run, ...question}) {
	return confirmAction({...question, check: async (values) => {
		try {
			await run(values);
			return null;
		} catch (err) {
			return fieldErrors(err);
		}
	}});
}

// fieldErrors returns the server's errors by field.
function fieldErrors(err) {
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

function targetNode(target) {
	return h('p', {class: 'action-target'}, keyNode(target.parts), h('span', {class: 'muted'}, `limit ${show(target.limit, 64)}`));
}

function reasonField(hint) {
	return {name: 'reason', label: 'Reason', required: true, hint};
}

function authorField() {
	return {name: 'author', label: 'Your name', required: true, value: loadAuthor() || me().name, hint: 'The contact for questions.'};
}

// loadAuthor returns the last entered name. A shared token's name does not identify a person.
function loadAuthor() {
	try {
		return localStorage.getItem(AUTHOR) ?? '';
	} catch {
		return ''; // no storage: ask each time
	}
}

function saveAuthor(name) {
	try {
		localStorage.setItem(AUTHOR, name.trim());
	} catch {
		// no storage: ask each time
	}
}
