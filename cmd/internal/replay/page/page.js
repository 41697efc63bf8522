// SPDX-License-Identifier: Apache-2.0
//
// Replaces the static charts with interactive ones. The page is complete without it.

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
