// SPDX-License-Identifier: Apache-2.0
//
// The colors of charts as numbers, which a canvas needs: the custom properties of base.css in the current theme.
//
//   paint(name, alpha = 1)  name is allowed, denied, shadow, degraded, level, near, a, b, c, d, grid, axis, text, line
//   onTheme(f)              calls f when the theme changes; returns a function that ends this

const listeners = new Set();
const resolved = new Map();
let probe = null;

export function paint(name, alpha = 1) {
	const [r, g, b, a] = channels(name);
	return `rgba(${r}, ${g}, ${b}, ${a * alpha})`;
}

function channels(name) {
	if (!resolved.has(name)) {
		if (!probe) {
			probe = document.createElement('span');
			probe.hidden = true;
			probe.style.forcedColorAdjust = 'none'; // lines must differ even if the system chooses all other colors
			document.body.append(probe);
			watchTheme();
		}
		probe.style.color = `var(--chart-${name})`;
		const [r = 0, g = 0, b = 0, a = 1] = (getComputedStyle(probe).color.match(/[\d.]+/g) ?? []).map(Number);
		resolved.set(name, [r, g, b, a]);
	}
	return resolved.get(name);
}

export function onTheme(f) {
	listeners.add(f);
	return () => listeners.delete(f);
}

function watchTheme() {
	const changed = () => {
		resolved.clear();
		for (const f of [...listeners]) f();
	};
	new MutationObserver(changed).observe(document.documentElement, {attributeFilter: ['data-theme']});
	matchMedia('(prefers-color-scheme: dark)').addEventListener('change', changed);
}
