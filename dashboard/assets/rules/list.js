// SPDX-License-Identifier: Apache-2.0

import {get} from '../shell/api.js';
import {wordOf} from '../overrides/form.js';

// ruleList returns all rules of the policy, or one: [{name, keys, limits: [{name, algorithm,
// capacity, tokens, every, refill, anchor, start, kept}]}]. kept has the policy fields that a
// limit override keeps. The list is empty if the request fails.
export async function ruleList(only = '') {
	try {
		const tree = await get(only ? `v1/rules?${new URLSearchParams({rule: only})}` : 'v1/rules');
		return tree.policies.flatMap((p) => p.groups).flatMap((g) => g.rules).map((r) => ({
			name: r.name, keys: r.limit_keys,
			limits: r.limits.map((l) => ({name: l.name, algorithm: l.algorithm, refill: l.refill, anchor: l.anchor, start: l.start, capacity: l.capacity, kept: keptOf(l), ...rateOf(l)})),
		}));
	} catch {
		return [];
	}
}

function keptOf({max_reserved: most, stages}) {
	return {...(most === null || most === undefined ? {} : {max_reserved: most}), ...(stages.length === 0 ? {} : {staged_actions: stages.map(stageOf)})};
}

function stageOf({at, delay}) {
	const stage = {threshold: Number(at.replace('%', '')), action: delay > 0 ? 'throttle' : 'warn'};
	return delay > 0 ? {...stage, delay: wordOf(delay)} : stage;
}

// rateOf parses 10/s or 7/1m. Windows and intervals are not configured by a rate, so their values
// stay empty.
function rateOf({algorithm, refill, rate}) {
	if (algorithm !== 'token_bucket' || refill === 'interval') {
		return {tokens: '', every: ''};
	}
	const [tokens, length = ''] = String(rate).split('/');
	return {tokens, every: /^\d/.test(length) ? length : `1${length}`};
}
