// SPDX-License-Identifier: Apache-2.0

// Overrides in words. Pure.

const BODY = ['id', 'action', 'rules', 'match', 'key', 'algorithm', 'algorithm_config', 'limits', 'reason', 'author', 'expires_at'];

// bodyOf returns an override as a request body, without the fields that the server adds.
export function bodyOf(override) {
	return Object.fromEntries(BODY.filter((name) => override[name] !== undefined).map((name) => [name, override[name]]));
}

// inForce reports whether an override is active.
export function inForce(override, now) {
	return (override.state ?? 'in_force') === 'in_force' && Date.parse(override.expires_at) > now;
}

// whomText describes the targets of an override.
export function whomText(override) {
	const parts = [];
	if (override.key) {
		parts.push(override.key);
	}
	if (override.match && Object.keys(override.match).length > 0) {
		const alternatives = Array.isArray(override.match) ? override.match : [override.match];
		parts.push(alternatives.map((clauses) => Object.entries(clauses).map(([name, wanted]) => `${name} = ${valueText(wanted)}`).join(', ')).join('; or '));
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

// limitText describes the limit of an override, or "".
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
