// SPDX-License-Identifier: Apache-2.0
//
//   icon(name)  a 20×20 icon in the color of the text; empty for unknown names

import {svg} from '../ui/dom.js';

// Paths on a 20×20 grid, stroked with a width of 1.5.
const drawings = {
	brand: ['M3.5 4l1.2 10.6A2 2 0 0 0 6.7 16.4h6.6a2 2 0 0 0 2-1.8L16.5 4', 'M4.4 9.6c1.9-1.3 3.7-1.3 5.6 0s3.7 1.3 5.6 0'],
	overview: ['M3 16.5V11M8 16.5V4.5M13 16.5V8.5M17.5 16.5h-16'],
	rules: ['M4 4.5h4M4 4.5v11h4M4 10h4', 'M10.5 3h6v3h-6zM10.5 8.5h6v3h-6zM10.5 14h6v3h-6z'],
	keys: ['M12.5 11.5a4 4 0 1 0-3.7-2.5L3 14.8V17h2.5v-1.8h1.8v-1.8h1.9l.8-.9c.7.4 1.6.6 2.5 0', 'M13.5 6.5h.01'],
	explain: ['M9 15.5a6.5 6.5 0 1 1 6.5-6.5M13.6 13.6L17.5 17.5', 'M7.3 7.3A1.8 1.8 0 1 1 9.5 9c-.4.2-.5.5-.5 1M9 12.2h.01'],
	playground: ['M3 6h7M14.5 6H17M3 14h2.5M10 14h7', 'M10 6a2.25 2.25 0 1 0 4.5 0 2.25 2.25 0 1 0-4.5 0M5.5 14a2.25 2.25 0 1 0 4.5 0 2.25 2.25 0 1 0-4.5 0'],
	violations: ['M10 3l7.5 13.5h-15z', 'M10 8.5v3.5M10 14.2h.01'],
	ai: ['M8.5 4l1.6 4.4 4.4 1.6-4.4 1.6L8.5 16l-1.6-4.4L2.5 10l4.4-1.6z', 'M15.5 3v3.5M13.75 4.75h3.5M15.5 14v2.5M14.25 15.25h2.5'],
	theme: ['M10 3.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 1 0 0-13z', 'M10 3.5v13M10 6.5h4.5M10 10h6.5M10 13.5h4.5'],
	activity: ['M10 4.5V10l3.5 2', 'M3.2 8.3A7 7 0 1 1 3.5 12M3 4.5v4h4'],
	person: ['M10 10a3.2 3.2 0 1 0 0-6.4 3.2 3.2 0 1 0 0 6.4z', 'M3.8 16.8c.7-2.9 3.2-4.3 6.2-4.3s5.5 1.4 6.2 4.3'],
	check: ['M4.5 10.5l3.5 3.5 7.5-8'],
	copy: ['M7 7h9v9.5H7z', 'M4 13V3.5h9'],
	ok: ['M4.5 10.5l3.5 3.5 7.5-8'],
	note: ['M10 9v5M10 6.2h.01'],
	bad: ['M5.5 5.5l9 9M14.5 5.5l-9 9'],
	none: [],
};

export function icon(name) {
	return svg('svg', {class: `icon icon-${name}`, viewBox: '0 0 20 20', fill: 'none', stroke: 'currentColor', 'stroke-width': '1.5',
		'stroke-linecap': 'round', 'stroke-linejoin': 'round', 'aria-hidden': 'true'}, (drawings[name] ?? []).map((d) => svg('path', {d})));
}
