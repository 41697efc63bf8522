// SPDX-License-Identifier: Apache-2.0
//
//   violationFile(query) → {node}   a button that saves all rows of query() as CSV
//
// A link could not send the token, so the page fetches the file and saves it from memory.

import {h} from '../ui/dom.js';
import {num} from '../ui/format.js';
import {headers} from '../shell/api.js';
import {urlOf} from '../shell/session.js';
import {toast} from '../shell/dialog.js';

export function violationFile(query) {
	const node = h('button', {type: 'button', class: 'btn', onclick: async () => {
		node.disabled = true;
		node.textContent = 'Saving…';
		try {
			await save(query());
		} catch (err) {
			toast({text: `Cannot save the file: ${err.message}`, kind: 'bad'});
		}
		node.disabled = false;
		node.textContent = 'Save CSV';
	}}, 'Save CSV');
	return {node};
}

async function save(query) {
	const answer = await fetch(urlOf(`v1/violations.csv?${query}`), {headers: headers(), cache: 'no-store'});
	if (!answer.ok) {
		const said = await answer.json().catch(() => ({}));
		throw new Error(said.detail ?? `the server returned status ${answer.status}`);
	}
	const name = /filename="([\w.-]+)"/.exec(answer.headers.get('Content-Disposition') ?? '')?.[1] ?? 'violations.csv';
	const text = await answer.text(); // fails if the response is truncated
	const lines = text.split('\r\n').filter(Boolean);
	const whole = !lines.at(-1).startsWith('incomplete:');
	const url = URL.createObjectURL(new Blob([text], {type: 'text/csv'}));
	h('a', {href: url, download: name}).click();
	setTimeout(() => URL.revokeObjectURL(url), 10000);
	const rows = lines.length - (whole ? 1 : 2);
	toast(whole ? {text: `Saved ${num(rows)} ${rows === 1 ? 'row' : 'rows'} as ${name}`, kind: 'ok'} :
		{text: `Saved only the newest ${num(rows)} rows as ${name}. Choose a shorter time to save all.`, kind: 'bad'});
}
