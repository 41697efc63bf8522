// SPDX-License-Identifier: Apache-2.0
//
// A button that opens a panel below itself.
//
//   menu({label, face() → nodes, content(close) → node, wide}) → node, with redraw()
//
// If the content has a redraw method, redraw calls it instead of replacing the content.
//
// Escape and a click outside close the panel and return the focus to the button.

import {h, replace} from '../ui/dom.js';
import {released} from './press.js';

let menus = 0;

export function menu({label, face, content, wide = false}) {
	const id = `menu-${++menus}`;
	const panel = h('div', {class: `menu-panel${wide ? ' menu-wide' : ''}`, id, tabindex: '-1', hidden: true});
	const button = h('button', {type: 'button', class: 'btn btn-ghost topbar-btn', 'aria-expanded': 'false', 'aria-controls': id, title: label});
	const node = h('div', {class: 'menu'}, button, panel);
	const draw = () => replace(button, h('span', {class: 'visually-hidden'}, `${label} `), face());
	const redraw = async () => {
		await released();
		draw();
		if (panel.hidden) return;
		if (panel.firstChild?.redraw) {
			panel.firstChild.redraw();
			return;
		}
		const within = panel.contains(document.activeElement);
		replace(panel, content(close));
		if (within) panel.focus();
	};
	const open = (yes) => {
		panel.hidden = !yes;
		button.setAttribute('aria-expanded', String(yes));
		if (yes) replace(panel, content(close));
	};
	const close = () => {
		const within = node.contains(document.activeElement);
		open(false);
		if (within) button.focus();
	};
	button.addEventListener('click', () => open(panel.hidden));
	node.addEventListener('keydown', (e) => {
		if (e.key === 'Escape' && !panel.hidden) {
			e.stopPropagation();
			close();
		}
	});
	document.addEventListener('pointerdown', (e) => {
		if (!panel.hidden && !node.contains(e.target)) open(false);
	});
	node.addEventListener('focusout', (e) => {
		if (e.relatedTarget && !node.contains(e.relatedTarget)) open(false);
	});
	draw();
	node.redraw = redraw;
	return node;
}
