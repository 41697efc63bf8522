// SPDX-License-Identifier: Apache-2.0
//
// Puts charts that can be asked into the places of those that stand still. Without it
// the page says all the same.

import {chart} from './chart.js';

for (const figure of JSON.parse(document.getElementById('data').textContent).figures) {
	const place = document.getElementById(figure.id);
	const half = figure.step / 2;
	place.classList.add('live');
	chart(place, {
		title: figure.title, summary: figure.summary, x: figure.x, xKind: figure.clock ? 'clock' : 'seconds', utc: true,
		xRange: [figure.x[0] - half, figure.x.at(-1) + half], y: {label: figure.unit}, stacked: figure.stacked ? 'bars' : false, height: 260,
		series: figure.series, sync: 'times',
	});
}
