// SPDX-License-Identifier: Apache-2.0

package browser

import "fmt"

// overflowScript is a script that returns the innermost elements that extend beyond the window and are not clipped.
const overflowScript = `(() => {
	const width = %d;
	const page = document.documentElement;
	if (page.scrollWidth <= width && innerWidth <= width) return [];
	const over = e => e.getBoundingClientRect().right > width + 1;
	const clipped = e => {
		for (e = e.parentElement; e && e !== document.body; e = e.parentElement) {
			const style = getComputedStyle(e);
			if (style.overflowX !== 'visible' || style.position === 'fixed') return true;
		}
		return false;
	};
	const wide = [...document.body.querySelectorAll('*')].filter(e => over(e) && ![...e.children].some(over) && !clipped(e));
	return ['window ' + width + ', page ' + page.scrollWidth, ...wide.slice(0, 5).map(e => e.outerHTML.slice(0, 200))];
})()`

// CheckNoOverflow fails the test if the page scrolls horizontally.
func (p *Page) CheckNoOverflow() {
	p.t.Helper()
	if wide := Eval[[]string](p, fmt.Sprintf(overflowScript, p.size.width)); len(wide) > 0 {
		p.t.Errorf("%s is wider than the window: %q", p.URL(), wide)
	}
}
