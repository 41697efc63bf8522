// SPDX-License-Identifier: Apache-2.0
//
// Sets the theme that was chosen before anything is drawn. Not a module: those run too late for that.
{
	let chosen = null;
	try {
		chosen = localStorage.getItem('mete-theme');
	} catch {
		// without storage it is the system's theme
	}
	if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset.theme = chosen;
}
