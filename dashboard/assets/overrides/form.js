// SPDX-License-Identifier: Apache-2.0

// What people type to make an override, as the server takes it. Pure.

import {tokens} from '../ui/format.js';
import {algorithmOf} from '../shell/vocabulary.js';

const seconds = {s: 1, min: 60, m: 60, h: 3600, d: 86400, w: 604800};

// expiryChoices are how long an override mostly holds.
export const expiryChoices = [['15m', '15 minutes'], ['1h', '1 hour'], ['1d', '1 day'], ['7d', '1 week'], ['', 'Other…']];

// parseDuration reads a time such as 90m, 1.5h or 2d 6h, in seconds. null is none.
export function parseDuration(text) {
	const parts = [...text.trim().matchAll(/(\d+(?:\.\d+)?)\s*(s|min|m|h|d|w)(?=[\s\d]|$)\s*/gy)];
	if (parts.length === 0 || parts.map((p) => p[0]).join('') !== text.trim()) {
		return null;
	}
	const sum = parts.reduce((all, [, n, unit]) => all + Number(n) * seconds[unit], 0);
	return sum > 0 ? sum : null;
}

// expiryOf is when something ends that lasts so long, as the server takes it.
export function expiryOf(text, now) {
	const length = parseDuration(text);
	if (length === null) {
		throw new Error(`“${text}” is not how long it lasts; write a number and a unit, such as 90m, 12h or 3d`);
	}
	return new Date(Math.ceil((now + length * 1000) / 1000) * 1000).toISOString().replace('.000Z', 'Z');
}

const shapes = {rate: 'rate', queue: 'queue', window: 'window', sliding: 'window'};

// limitShape says what the limit of an algorithm is made of: a rate, a rate and a queue,
// or a window. null is one that is not changed here.
export function limitShape(algorithm) {
	return shapes[algorithmOf(algorithm).shape] ?? null;
}

const units = {1: '1s', 60: '1m', 3600: '1h', 86400: '1d'};

// wordOf is a number of seconds as a policy writes it.
export function wordOf(per) {
	if (units[per]) {
		return units[per];
	}
	for (const [name, length] of [['d', 86400], ['h', 3600], ['m', 60], ['s', 1]]) {
		if (per >= length && per % length === 0) {
			return `${per / length}${name}`;
		}
	}
	const us = Math.round(per * 1e6);
	return us % 1000 === 0 ? `${us / 1000}ms` : `${us}us`;
}

// beginsWords say when intervals begin: as the limit in force has it.
function beginsWords({refill, anchor, start}) {
	if (refill !== 'interval') {
		return '';
	}
	const since = start > 0 ? `, and ${wordOf(start)}` : '';
	return {epoch: `counted from 1970, 00:00 UTC${since}`, key: 'begins at a time of each key’s own', first: 'the first begins with the first request'}[anchor] ?? '';
}

// limitFields are what another limit is said by, with what is known of the one in force.
export function limitFields(target) {
	const amount = {name: 'tokens', label: 'Tokens', value: target.tokens ?? '', inputmode: 'decimal'};
	const every = {name: 'every', label: 'Every', value: target.every ?? wordOf(target.per ?? 1), hint: beginsWords(target)};
	const capacity = {name: 'burst', label: 'Capacity', value: withoutQueue(target), inputmode: 'decimal'};
	switch (limitShape(target.algorithm)) {
		case 'rate':
			return [amount, every, capacity];
		case 'queue':
			return [amount, every, capacity, {name: 'queue', label: 'Queue', value: target.queue ?? '', inputmode: 'decimal'}];
		default:
			return [amount, {...every, label: 'Window'}, ...(rollsOver(target) ? [capacity] : [])];
	}
}

// rollsOver reports whether a window leaves to the next ones what it has not used.
function rollsOver({algorithm, capacity, tokens}) {
	return algorithmOf(algorithm).shape === 'window' && Number(tokens) > 0 && capacity > Number(tokens);
}

// withoutQueue is the capacity, in which a bucket shows its queue.
function withoutQueue({capacity, queue}) {
	return capacity === undefined ? '' : Math.round((capacity - (queue ?? 0)) * 1000) / 1000;
}

// keptOf is what the limit in force of a key has beside its numbers, which another limit
// keeps: that of the override which has set it, or of the rule.
export function keptOf(target, rules) {
	const own = target.override && limitOfOverride(target);
	if (own) {
		return Object.fromEntries(['max_reserved', 'staged_actions'].filter((name) => own[name] !== undefined).map((name) => [name, own[name]]));
	}
	return rules.flatMap((r) => r.limits).find((l) => l.name === target.limit)?.kept ?? {};
}

// limitOfOverride is the config that an override has for the limit of a key.
function limitOfOverride({override, rule, limit}) {
	const named = override.limits?.find((l) => `${rule}/${l.name}` === limit || l.name === limit);
	return named ? {...named, ...named.algorithm_config} : override.algorithm_config;
}

// keptWords say what is kept.
export function keptWords(kept = {}) {
	const stages = (kept.staged_actions ?? []).filter((s) => s.action !== 'reject').map((s) =>
		`from ${s.threshold ?? s.threshold_percent} % used ${s.action === 'throttle' ? `each request waits ${s.delay ?? `${s.delay_ms}ms`}` : 'requests are warned'}`);
	const parts = [stages.length > 0 && `staged_actions (${stages.join(', ')})`, kept.max_reserved !== undefined && `max_reserved (${tokens(kept.max_reserved)})`].filter(Boolean);
	return parts.length > 0 ? ` Kept as they are: ${parts.join(' and ')}.` : '';
}

// limitConfig is the config of a limit, from the values of its fields. What is no number
// goes as it is: the server says what is wrong with it.
export function limitConfig(target, values) {
	const number = (name) => (/^\d+(\.\d+)?$/.test(values[name].trim()) ? Number(values[name]) : values[name].trim());
	const rate = () => `${values.tokens.trim()}/${values.every.trim()}`;
	switch (limitShape(target.algorithm)) {
		case 'rate':
			return {rate: rate(), burst: number('burst'), ...(target.refill === 'interval' ? {refill: 'interval'} : {}), ...begins(target), ...target.kept};
		case 'queue':
			return {rate: rate(), capacity: number('burst'), queue: number('queue')};
		default:
			return {tokens: number('tokens'), window: values.every.trim(), ...(values.burst === undefined ? {} : {capacity: number('burst')}), ...begins(target), ...target.kept};
	}
}

// begins keeps where intervals begin.
function begins({anchor, start}) {
	return {...(anchor && anchor !== 'epoch' ? {anchor} : {}), ...(start > 0 ? {start: wordOf(start)} : {})};
}

// limitOverride puts a limit into an override of a key's rule. Of a rule with several,
// it is the one that the key is of.
export function limitOverride(target, values) {
	const config = limitConfig(target, values);
	const {algorithm} = target;
	const name = target.limit.startsWith(`${target.rule}/`) ? target.limit.slice(target.rule.length + 1) : '';
	return name ? {limits: [{name, algorithm, ...config}]} : {algorithm, algorithm_config: config};
}

// limitWords say the limit that the fields describe.
export function limitWords(target, values) {
	switch (limitShape(target.algorithm)) {
		case 'rate':
			return `${values.tokens} ${Number(values.tokens) === 1 ? 'token' : 'tokens'} every ${values.every}, capacity ${values.burst}`;
		case 'queue':
			return `${values.tokens} ${Number(values.tokens) === 1 ? 'token' : 'tokens'} every ${values.every}, a queue of ${values.queue}`;
		default:
			return `${values.tokens} ${Number(values.tokens) === 1 ? 'token' : 'tokens'} in ${values.every}`;
	}
}
