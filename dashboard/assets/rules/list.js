// SPDX-License-Identifier: Apache-2.0

import {get} from '../shell/api.js';

// ruleList is every rule of the policy: [{name, keys, limits: [{name, algorithm,
// capacity, tokens, every, refill, anchor, start}]}]. It is empty where the server does not say.
export async function ruleList() {
	try {
		const tree = await get('data/rules');
		return tree.policies.flatMap((p) => p.groups).flatMap((g) => g.rules).map((r) => ({
			name: r.name, keys: r.limit_keys,
			limits: r.limits.map((l) => ({name: l.name, algorithm: l.algorithm, refill: l.refill, anchor: l.anchor, start: l.start, capacity: l.capacity, ...rateOf(l)})),
		}));
	} catch {
		return [];
	}
}

// rateOf reads 10/s or 7/1m. Of windows and intervals that is not what they are said by,
// and so left to who writes another one.
function rateOf({algorithm, refill, rate}) {
	if (algorithm !== 'token_bucket' || refill === 'interval') {
		return {tokens: '', every: ''};
	}
	const [tokens, length = ''] = String(rate).split('/');
	return {tokens, every: /^\d/.test(length) ? length : `1${length}`};
}
