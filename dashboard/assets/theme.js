// SPDX-License-Identifier: Apache-2.0
//
// Applies the stored theme before the first paint. This is a classic script because modules run later.
{
	let chosen = null;
	try {
		chosen = localStorage.getItem('mete-theme');
	} catch {
		// no storage: use the system's theme
	}
	if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset.theme = chosen;
}
