// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"os"
	"strings"
	"testing"

	"github.com/metehq/mete/proof/browser"
)

// overview is the page of somebody who may see keys.
func overview(t *testing.T, site *browser.Site, size browser.Size, theme browser.Theme) *browser.Page {
	t.Helper()
	page := browser.Open(t, size, theme)
	page.Remember(browser.OperateToken)
	await(page, site.Page("overview"), "Overview")
	return page
}

// The page says at once how the limiter is, what it limits, whom and by which rule.
func TestOverview(t *testing.T) {
	t.Parallel()
	site := visited(t)
	browser.Each(t, func(t *testing.T, size browser.Size, theme browser.Theme) {
		page := overview(t, site, size, theme)
		visit(site) // what is shown is of the last minute
		page.WaitText(".health", "Healthy")
		page.WaitText(".health", "denied")
		page.WaitText(".health", "by rule search")
		page.WaitText(".tiles", "in 1 min")
		page.Poll("requests are drawn", "document.querySelector('.over-rates canvas')?.width > 0 && document.querySelector('.over-rates .chart-empty').hidden")
		page.WaitText(".over-latency", "p99")
		page.WaitText("table.over-rules", "search")
		page.WaitText(".top-keys", "alice")
		page.WaitText("#store-card", "answers")
		page.WaitText("#policy-card", "policy.yaml")
		page.WaitText("#overrides-card", "none")
		page.NoSideways()
		page.Axe()
		page.Screenshot("overview")
	})
}

// From what is denied one comes to the rule and to the key.
func TestOverview_Links(t *testing.T) {
	t.Parallel()
	site := visited(t)
	page := overview(t, site, browser.Desktop, browser.Light)
	page.WaitText("table.over-rules", "search")
	page.In("table.over-rules").Click("link", "search")
	page.WaitText("#topbar .title", "Rules")
	if got := page.URL(); !strings.HasSuffix(got, "#/rules/search") {
		t.Errorf("the rule is at %s", got)
	}
	page.Back()
	page.WaitText(".top-keys", "alice")
	page.In(".top-keys").Click("link", "*alice*")
	page.Poll("the key's page is there", "location.hash.startsWith('#/key?')")
	page.WaitText("#main", "alice")
}

// A server that nobody has asked says what to type, until somebody does.
func TestOverview_Fresh(t *testing.T) {
	t.Parallel()
	site := browser.Serve(t, policy)
	page := overview(t, site, browser.Phone, browser.Light)
	page.WaitText(".first-steps", "curl")
	page.Count("button", "Copy")
	page.WaitText(".health", "Nothing was asked")
	page.Poll("it goes on how long the policy is in force", `(window.seen ??= new Set()).add(document.querySelector('#policy-card time').textContent).size > 3`)
	page.NoSideways()
	page.Axe()
	page.Screenshot("overview-fresh")
	visit(site)
	page.WaitHidden(".first-steps")
}

// A policy that is refused stays out of force, and the page has all of its mistakes.
func TestOverview_RefusedPolicy(t *testing.T) {
	t.Parallel()
	site := visited(t)
	page := overview(t, site, browser.Desktop, browser.Light)
	file := site.Dir + "/policy.yaml"
	if err := os.WriteFile(file, []byte("rules:\n  - name: a\n    limit_keys: [nonsense nonsense]\n    colour: blue\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	page.WaitText(".health", "reload of the policy was refused")
	page.WaitText("#policy-card", "colour")
	page.WaitText("#policy-card", "reload refused")
	page.Axe()
	page.Screenshot("overview-refused")
	if err := os.WriteFile(file, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	page.WaitNoText(".health", "refused")
	page.WaitNoText("#policy-card", "colour")
}

// What a chart shows can be had without seeing it: by its description, by the arrow keys,
// and as a table.
func TestOverview_ChartWithoutEyes(t *testing.T) {
	t.Parallel()
	site := visited(t)
	page := overview(t, site, browser.Desktop, browser.Dark)
	visit(site)
	page.Poll("the chart says what it shows", "document.querySelector('.over-rates [role=img]').ariaLabel.includes('were allowed')")
	browser.Eval[any](page, "document.querySelector('.over-rates [role=img]').focus()")
	page.Press("End")
	page.WaitText(".over-rates [aria-live]", "denied")
	page.Press("ArrowLeft")
	page.WaitVisible(".over-rates .chart-tip")
	page.Press("Escape")
	page.WaitHidden(".over-rates .chart-tip")
	page.In(".over-rates").Click("button", "Show as table")
	page.WaitVisible(".over-rates table")
	page.WaitText(".over-rates table", "shadow-denied")
	page.Axe()
	page.In(".over-rates").Click("button", "15 min")
	page.Poll("it is pressed", "document.querySelector('[data-range=\"900\"]').getAttribute('aria-pressed') === 'true'")
}

// What people send as names is shown, and does nothing.
func TestOverview_HostileKeys(t *testing.T) {
	t.Parallel()
	site := browser.Serve(t, policy)
	page := overview(t, site, browser.Phone, browser.Dark)
	hostile := []string{"<img src=x onerror=alert(1)>", "a\u202etxt.exe", "tab\tand\x07bell", strings.Repeat("long", 100)}
	for _, key := range hostile {
		site.Take(12, browser.Attributes{"header:x-user": key, "path": "/search", "method": "GET", "ip:address": "192.0.2.1"})
	}
	page.WaitText(".top-keys", "<img src=x")
	page.WaitText(".top-keys", `\u202e`)
	if got := page.Text(".top-keys"); strings.ContainsAny(got, "\u202e\x07") {
		t.Errorf("what cannot be seen is in %q", got)
	}
	page.NoSideways()
	page.Axe()
	page.Screenshot("overview-hostile")
}

// Text of others has nothing in it that cannot be seen.
func TestShow(t *testing.T) {
	t.Parallel()
	site := browser.Serve(t, policy)
	page := browser.Open(t, browser.Desktop, browser.Light)
	page.Remember(browser.ReadToken)
	await(page, site.Page("overview"), "Overview")
	for _, c := range []struct{ name, in, want string }{
		{"plain", "Größe 10 €", "Größe 10 €"},
		{"markup", "<b>&amp;", "<b>&amp;"},
		{"lines", "a\r\nb\tc\x00", `a\r\nb\tc\0`},
		{"control", "a\x1b[31m\x7f", `a\u001b[31m\u007f`},
		{"bidi", "\u202eabc\u2066", `\u202eabc\u2066`},
		{"zero width", "a\u200bb\ufeffc\u00add", `a\u200bb\ufeffc\u00add`},
		{"blanks", "a\u00a0b\u3000c\u2003d", `a\u00a0b\u3000c\u2003d`},
		{"fillers", "\u3164\u115f\u2800", `\u3164\u115f\u2800`},
		{"tags", "a\U000e0041", `a\u{e0041}`},
		{"heaped marks", "e" + strings.Repeat("\u0301", 5), "e" + strings.Repeat("\u0301", 3) + `\u0301\u0301`},
		{"right to left letters", "שלום", "שלום"},
		{"replacement", "a\ufffd", "a\ufffd"},
		{"long", strings.Repeat("x", 10240), strings.Repeat("x", 160) + "… (10,240 characters)"},
		{"long, cut within a pair", strings.Repeat("x", 159) + "😀y", strings.Repeat("x", 159) + "… (161 characters)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := browser.Eval[string](page, "import('./ui/dom.js').then(m => m.show("+browser.JS(c.in)+"))"); got != c.want {
				t.Errorf("show(%q) is %q, want %q", c.in, got, c.want)
			}
		})
	}
	const alone = `import('./ui/dom.js').then(m => m.show('a\ud800b'))`
	if got := browser.Eval[string](page, alone); got != `a\ud800b` {
		t.Errorf("half a pair is %q", got)
	}
}

// Numbers are in words of people.
func TestFormat(t *testing.T) {
	t.Parallel()
	site := browser.Serve(t, policy)
	page := browser.Open(t, browser.Desktop, browser.Light)
	page.Remember(browser.ReadToken)
	await(page, site.Page("overview"), "Overview")
	for _, c := range []struct{ expression, want string }{
		{"num(0)", "0"}, {"num(1234)", "1,234"}, {"num(12345)", "12.3 k"}, {"num(9999.6)", "10,000"}, {"num(999950)", "1 M"},
		{"num(4.5678e9)", "4.57 G"}, {"num(0.25)", "0.25"}, {"num(null)", "–"}, {"num(NaN)", "–"}, {"num(-12345)", "-12.3 k"},
		{"rate(12.44)", "12.4/s"}, {"rate(1240)", "1,240/s"}, {"rate(undefined)", "–"},
		{"dur(0)", "0 s"}, {"dur(0.0012)", "1.2 ms"}, {"dur(2.5e-7)", "250 ns"}, {"dur(3.42)", "3.4 s"}, {"dur(59.97)", "1 min"},
		{"dur(320)", "5 min 20 s"}, {"dur(7200)", "2 h"}, {"dur(90000)", "1 d 1 h"}, {"dur(null)", "–"},
		{"pct(31, 1000)", "3.1 %"}, {"pct(0, 0)", "0 %"}, {"pct(1, 1e6)", "< 0.1 %"}, {"pct(999999, 1e6)", "> 99.9 %"},
		{"tokens(41.5)", "41.5"}, {"tokens(1e7)", "10 M"}, {"tokens(12345.678)", "12,345.678"},
		{"ago(1000, 1012e3)", "12 s ago"}, {"ago(1000, 880e3)", "in 2 min"}, {"ago(null)", "–"}, {"ago('never')", "–"},
	} {
		if got := browser.Eval[string](page, "import('./ui/format.js').then(({num, rate, dur, pct, tokens, ago}) => "+c.expression+")"); got != c.want {
			t.Errorf("%s is %q, want %q", c.expression, got, c.want)
		}
	}
}
