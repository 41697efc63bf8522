// SPDX-License-Identifier: Apache-2.0

// Overrides as people say them, and which of them are about a key. Pure.

const BODY = ['id', 'action', 'rules', 'match', 'key', 'algorithm', 'algorithm_config', 'limits', 'reason', 'author', 'expires_at'];

// bodyOf is an override as it is sent to be made again: without what the server says
// of it.
export function bodyOf(override) {
	return Object.fromEntries(BODY.filter((name) => override[name] !== undefined).map((name) => [name, override[name]]));
}

// inForce reports whether an override holds now.
export function inForce(override, now) {
	return (override.state ?? 'in_force') === 'in_force' && Date.parse(override.expires_at) > now;
}

// whomText says who an override is about.
export function whomText(override) {
	const parts = [];
	if (override.key) {
		parts.push(override.key);
	}
	if (override.match && Object.keys(override.match).length > 0) {
		parts.push(Object.entries(override.match).map(([name, wanted]) => `${name} = ${valueText(wanted)}`).join(', '));
	}
	if (parts.length === 0) {
		parts.push(override.rules?.length && override.action === 'limit' ? 'every key' : 'all requests');
	}
	if (override.rules?.length) {
		parts.push(`rule ${override.rules.join(', ')}`);
	}
	return parts.join(' · ');
}

function valueText(wanted) {
	if (Array.isArray(wanted)) {
		return wanted.map(valueText).join(' or ');
	}
	if (wanted !== null && typeof wanted === 'object') {
		return `not ${valueText(wanted.not)}`;
	}
	return String(wanted);
}

// limitText is the limit of an override, "" where it has none.
export function limitText(override) {
	if (override.limits) {
		return override.limits.map((l) => [l.name, configText({...l, ...l.algorithm_config})].filter(Boolean).join(': ')).join('; ');
	}
	return override.algorithm_config ? configText(override.algorithm_config) : '';
}

function configText(c) {
	const rate = c.rate ? `${c.rate.replace('/1s', ' per second').replace('/1m', ' per minute').replace('/1h', ' per hour')}` :
		c.rps !== undefined || c.tokens_per_second !== undefined ? `${c.rps ?? c.tokens_per_second} per second` : '';
	const window = c.window ? `${c.tokens} per ${c.window}` : c.period ? `${c.budget} per ${c.period}` : '';
	const burst = c.burst !== undefined ? `capacity ${c.burst}` : c.capacity !== undefined ? `capacity ${c.capacity}` : '';
	const queue = c.queue !== undefined ? `queue ${c.queue}` : '';
	return [rate || window, burst, queue].filter(Boolean).join(', ') || JSON.stringify(c);
}

// untagged is a key without the tag of slot_by.
export function untagged(key) {
	const end = key.indexOf('}');
	return key.startsWith('{') && end > 0 ? key.slice(end + 1) : key;
}

// aboutKey says whether an override is about a key: 'key' names just this one, 'match'
// and 'all' take it with others, null does not take it. A match on attributes that the
// key does not show is not known to take it: null.
export function aboutKey(override, target) {
	if (override.rules?.length && !override.rules.includes(target.rule)) {
		return null;
	}
	if (override.key) {
		return sameKey(override.key, target) ? 'key' : null;
	}
	const clauses = Object.entries(override.match ?? {});
	if (clauses.length === 0) {
		return 'all';
	}
	const of = new Map((target.parts ?? []).filter((p) => !p.hashed).map((p) => [p.name, p.value]));
	return clauses.every(([name, wanted]) => of.has(name) && matches(of.get(name), wanted)) ? 'match' : null;
}

// sameKey compares what stands behind the limit: an override by key is about the
// requests that spend from it, under whatever limit of the rule.
function sameKey(key, target) {
	const [limit, components] = splitKey(key);
	const rule = target.rule;
	return components === splitKey(target.key)[1] && (limit === rule || limit.startsWith(`${rule}/`));
}

// splitKey is the limit of a key and what stands behind it.
export function splitKey(key) {
	const plain = untagged(key);
	const at = plain.indexOf(':');
	const [limit, components] = at < 0 ? [plain, ''] : [plain.slice(0, at), plain.slice(at + 1)];
	try {
		return [decodeURIComponent(limit), components];
	} catch {
		return [limit, components]; // not UTF-8: no rule is called so
	}
}

function matches(value, wanted) {
	if (Array.isArray(wanted)) {
		return wanted.some((w) => matches(value, w));
	}
	if (wanted !== null && typeof wanted === 'object') {
		return !matches(value, wanted.not);
	}
	const text = String(wanted);
	return text.endsWith('*') ? value.startsWith(text.slice(0, -1)) : value === text;
}
