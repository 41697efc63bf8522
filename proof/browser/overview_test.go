// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"os"
	"strings"
	"testing"

	"github.com/metehq/mete/proof/browser"
)

// overview opens the page for a user who can see keys.
func overview(t *testing.T, site *browser.Site, size browser.Size, theme browser.Theme) *browser.Page {
	t.Helper()
	page := browser.Open(t, size, theme)
	page.Remember(browser.OperateToken)
	await(page, site.Page("overview"), "Overview")
	return page
}

func TestOverview(t *testing.T) {
	t.Parallel()
	site := browser.Serve(t, policy)
	runInTurn(t, site, part{"fresh", overviewFresh}, part{"looks", overviewLooks})
	runTogether(t, site, part{"links", overviewLinks}, part{"chart without eyes", overviewChartAccessible},
		part{"hostile keys", overviewHostileKeys}, part{"refused policy", overviewRefusedPolicy})
}

// The page shows the state of the limiter and the limited keys with their rules.
func overviewLooks(t *testing.T, site *browser.Site) {
	browser.Each(t, func(t *testing.T, size browser.Size, theme browser.Theme) {
		page := overview(t, site, size, theme)
		visit(site) // what is shown is of the last minute
		page.WaitText(".health", "Limiting")
		page.WaitText(".health", "req/s")
		page.WaitText(".health", "by rule search")
		page.WaitText(".tiles", "in the last minute")
		page.Poll("requests are drawn", "document.querySelector('.over-rates canvas')?.width > 0 && document.querySelector('.over-rates .chart-empty').hidden")
		page.WaitText(".over-latency", "p99")
		page.WaitText("table.over-rules", "search")
		page.WaitText(".top-keys", "alice")
		page.WaitText("#store-card", "answers")
		page.WaitText("#policy-card", "policy.yaml")
		page.WaitText("#overrides-card", "none")
		page.CheckNoOverflow()
		page.Axe()
		page.Screenshot("overview")
	})
}

// Denials link to the rule and to the key.
func overviewLinks(t *testing.T, site *browser.Site) {
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

// Until the first request, the page suggests a command to send one.
func overviewFresh(t *testing.T, site *browser.Site) {
	page := overview(t, site, browser.Phone, browser.Light)
	page.WaitText(".first-steps", "curl")
	page.Count("button", "Copy")
	page.WaitText(".health", "No requests in the last minute")
	page.Poll("it goes on how long the policy is in force", `(window.seen ??= new Set()).add(document.querySelector('#policy-card time').textContent).size > 3`)
	page.CheckNoOverflow()
	page.Axe()
	page.Screenshot("overview-fresh")
	visit(site)
	page.WaitHidden(".first-steps")
}

// A rejected policy does not become active, and the page lists all of its errors.
func overviewRefusedPolicy(t *testing.T, site *browser.Site) {
	page := overview(t, site, browser.Desktop, browser.Light)
	file := site.Dir + "/policy.yaml"
	if err := os.WriteFile(file, []byte("rules:\n  - name: a\n    limit_keys: [nonsense nonsense]\n    colour: blue\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	page.WaitText(".health", "policy reload failed")
	page.WaitText("#policy-card", "colour")
	page.WaitText("#policy-card", "reload failed")
	page.Axe()
	page.Screenshot("overview-refused")
	if err := os.WriteFile(file, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	page.WaitNoText(".health", "reload failed")
	page.WaitNoText("#policy-card", "colour")
}

// The contents of a chart are available as a description, by the arrow keys and as a table.
func overviewChartAccessible(t *testing.T, site *browser.Site) {
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
	page.WaitText(".over-rates table", "shadow denials")
	page.Axe()
	page.In(".over-rates").Click("button", "15 min")
	page.Poll("it is pressed", "document.querySelector('[data-range=\"900\"]').getAttribute('aria-pressed') === 'true'")
}

// Hostile names appear as plain text.
func overviewHostileKeys(t *testing.T, site *browser.Site) {
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
	page.CheckNoOverflow()
	page.Axe()
	page.Screenshot("overview-hostile")
}
