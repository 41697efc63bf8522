// SPDX-License-Identifier: Apache-2.0

// Converts the inputs of the override form for the server. Pure.

import {tokens} from '../ui/format.js';
import {algorithmOf} from '../shell/vocabulary.js';

const seconds = {s: 1, min: 60, m: 60, h: 3600, d: 86400, w: 604800};

// expiryChoices are the usual lifetimes of overrides.
export const expiryChoices = [['15m', '15 minutes'], ['1h', '1 hour'], ['1d', '1 day'], ['7d', '1 week'], ['', 'Other…']];

// parseDuration parses a duration such as 90m, 1.5h or 2d 6h into seconds, or null.
export function parseDuration(text) {
	const parts = [...text.trim().matchAll(/(\d+(?:\.\d+)?)\s*(s|min|m|h|d|w)(?=[\s\d]|$)\s*/gy)];
	if (parts.length === 0 || parts.map((p) => p[0]).join('') !== text.trim()) {
		return null;
	}
	const sum = parts.reduce((all, [, n, unit]) => all + Number(n) * seconds[unit], 0);
	return sum > 0 ? sum : null;
}

// expiryOf returns the expiry for a lifetime, in the server's format.
export function expiryOf(text, now) {
	const length = parseDuration(text);
	if (length === null) {
		throw new Error(`“${text}” is not a duration; enter a number and a unit, such as 90m, 12h or 3d`);
	}
	return new Date(Math.ceil((now + length * 1000) / 1000) * 1000).toISOString().replace('.000Z', 'Z');
}

const shapes = {rate: 'rate', queue: 'queue', window: 'window', sliding: 'window'};

// limitShape returns the inputs of an algorithm's limit: 'rate', 'queue' or 'window', or null if the
// form cannot change it.
export function limitShape(algorithm) {
	return shapes[algorithmOf(algorithm).shape] ?? null;
}

const units = {1: '1s', 60: '1m', 3600: '1h', 86400: '1d'};

// wordOf formats seconds as in a policy.
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

// beginsWords describes the start of intervals, which the active limit sets.
function beginsWords({refill, anchor, start}) {
	if (refill !== 'interval') {
		return '';
	}
	const since = start > 0 ? `, and ${wordOf(start)}` : '';
	return {epoch: `aligned to 1970-01-01 00:00 UTC${since}`, key: 'starts at a different time for each key', first: 'starts with the first request'}[anchor] ?? '';
}

// limitFields returns the inputs for a limit, with the values of the active one.
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

// rollsOver reports whether unused tokens carry over to the next windows.
function rollsOver({algorithm, capacity, tokens}) {
	return algorithmOf(algorithm).shape === 'window' && Number(tokens) > 0 && capacity > Number(tokens);
}

// withoutQueue returns the capacity without the queue, which a bucket includes.
function withoutQueue({capacity, queue}) {
	return capacity === undefined ? '' : Math.round((capacity - (queue ?? 0)) * 1000) / 1000;
}

// keptOf returns the fields of the active limit that a changed limit keeps. They come from the override
// that set the limit, or from the rule.
export function keptOf(target, rules) {
	const own = target.override && limitOfOverride(target);
	if (own) {
		return Object.fromEntries(['max_reserved', 'staged_actions'].filter((name) => own[name] !== undefined).map((name) => [name, own[name]]));
	}
	return rules.flatMap((r) => r.limits).find((l) => l.name === target.limit)?.kept ?? {};
}

// limitOfOverride returns an override's config for the limit of a key.
function limitOfOverride({override, rule, limit}) {
	const named = override.limits?.find((l) => `${rule}/${l.name}` === limit || l.name === limit);
	return named ? {...named, ...named.algorithm_config} : override.algorithm_config;
}

// keptWords describes the kept fields.
export function keptWords(kept = {}) {
	const stages = (kept.staged_actions ?? []).filter((s) => s.action !== 'reject').map((s) =>
		`from ${s.threshold ?? s.threshold_percent}% used ${s.action === 'throttle' ? `each request waits ${s.delay ?? `${s.delay_ms}ms`}` : 'requests get a warning'}`);
	const parts = [stages.length > 0 && `staged_actions (${stages.join(', ')})`, kept.max_reserved !== undefined && `max_reserved (${tokens(kept.max_reserved)})`].filter(Boolean);
	return parts.length > 0 ? ` Unchanged: ${parts.join(' and ')}.` : '';
}

// limitConfig returns the config of a limit from its inputs. It sends invalid numbers unchanged, so that
// the server reports them.
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

// begins keeps the start of intervals.
function begins({anchor, start}) {
	return {...(anchor && anchor !== 'epoch' ? {anchor} : {}), ...(start > 0 ? {start: wordOf(start)} : {})};
}

// limitOverride returns the override fields for a limit. If the rule has several limits, it names the
// one of the key.
export function limitOverride(target, values) {
	const config = limitConfig(target, values);
	const {algorithm} = target;
	const name = target.limit.startsWith(`${target.rule}/`) ? target.limit.slice(target.rule.length + 1) : '';
	return name ? {limits: [{name, algorithm, ...config}]} : {algorithm, algorithm_config: config};
}

// limitWords describes the limit in the inputs.
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
