// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/metehq/mete/proof/browser"
)

const policy = `rules:
  - name: search
    description: Searches cost more than the rest.
    limit_keys: ["header:x-user"]
    match: {path: "/search*"}
    algorithm: token_bucket
    algorithm_config: {tokens_per_second: 5, burst: 10}
  - name: everybody
    limit_keys: ["ip:address"]
    algorithm: token_bucket
    algorithm_config: {tokens_per_second: 100, burst: 1000}
  - name: strict
    limit_keys: [method]
    mode: shadow
    algorithm: token_bucket
    algorithm_config: {tokens_per_second: 1, burst: 3}
`

// visited is a site that has had some visitors.
func visited(t *testing.T) *browser.Site {
	t.Helper()
	site := browser.Serve(t, policy)
	visit(site)
	return site
}

func visit(site *browser.Site) {
	for _, key := range []string{"alice", "bob", "carol"} {
		site.Take(15, browser.Attributes{"header:x-user": key, "path": "/search", "method": "GET", "ip:address": "192.0.2.1"})
	}
	site.Take(20, browser.Attributes{"path": "/home", "method": "GET", "ip:address": "2001:db8::1"})
}

// routes are the pages that every dashboard has, by their headings.
var routes = []struct{ route, heading string }{
	{"overview", "Overview"},
	{"rules", "Rules"},
	{"rules/search", "Rules"},
	{"keys", "Keys"},
	{"explain", "Explain"},
	{"playground", "Playground"},
	{"nowhere", "Page not found"},
}

// await goes to a page and waits until it is there.
func await(page *browser.Page, url, heading string) {
	page.Goto(url)
	page.WaitText("#topbar .title", heading)
	page.WaitText("#topbar", "live")
	page.Poll("the page is filled", "document.querySelector('#main .page')?.innerText.trim().length > 20")
}

func TestShell(t *testing.T) {
	t.Parallel()
	runTogether(t, visited(t), part{"every page", shellEveryPage}, part{"keyboard", shellKeyboard}, part{"theme", shellTheme},
		part{"undone", shellUndone}, part{"assets", shellAssets})
}

// Every page is there at every size in every theme, and everybody can read it. A short test takes each size and
// each theme once.
func shellEveryPage(t *testing.T, site *browser.Site) {
	looks := browser.Looks
	if testing.Short() {
		looks = looks[:2]
	}
	var parts []part
	for _, look := range looks {
		parts = append(parts, part{look.String(), func(t *testing.T, site *browser.Site) { everyPage(t, site, look.Size, look.Theme) }})
	}
	runTogether(t, site, parts...)
}

func everyPage(t *testing.T, site *browser.Site, size browser.Size, theme browser.Theme) {
	t.Helper()
	page := browser.Open(t, size, theme)
	page.Remember(browser.OperateToken)
	for _, r := range routes {
		await(page, site.Page(r.route), r.heading)
		page.CheckNoOverflow()
		page.Axe()
		page.Screenshot("shell-" + strings.ReplaceAll(r.route, "/", "-"))
		if got := browser.Eval[int](page, "document.querySelectorAll('h1').length"); got != 1 {
			t.Errorf("%s has %d headings of the first level, want 1", r.route, got)
		}
		if got := browser.Eval[string](page, "document.title"); got != r.heading+" · mete" {
			t.Errorf("%s has the title %q", r.route, got)
		}
	}
}

// Without a mouse one comes everywhere: past the navigation, to each page, into menus and
// out again.
func shellKeyboard(t *testing.T, site *browser.Site) {
	page := browser.Open(t, browser.Desktop, browser.Light)
	page.Remember(browser.OperateToken)
	await(page, site.Page("overview"), "Overview")

	page.Press("Tab")
	page.WaitFocused("link", "Skip to the content")
	page.Press("Enter")
	page.WaitFocused("main", "Overview")

	page.Reload()
	page.WaitText("#topbar", "live")
	page.WaitText("#main", "Requests per second") // the first page has no focus to move
	passed := page.TabTo("link", "Explain")
	for _, want := range []string{`link "Overview"`, `link "Rules"`, `link "Keys"`} {
		if !slices.Contains(passed, want) {
			t.Errorf("on the way are %q, want %s among them", passed, want)
		}
	}
	page.Press("Enter")
	page.WaitText("#topbar .title", "Explain")
	page.WaitFocused("main", "Explain")
	if got := browser.Eval[string](page, "document.querySelector('nav [aria-current=page]').innerText.trim()"); got != "Explain" {
		t.Errorf("the navigation says that the page is %q, want Explain", got)
	}
	page.Back()
	page.WaitText("#topbar .title", "Overview")

	page.Reload()
	page.WaitText("#topbar", "live")
	page.TabTo("button", "Theme")
	page.Press("Enter")
	page.TabTo("button", "Dark")
	page.Press("Space")
	page.WaitFocused("button", "Theme")
	page.Poll("it is dark", "document.documentElement.dataset.theme === 'dark'")
	page.Press("Enter")
	page.Wait("button", "Light")
	page.Press("Escape")
	page.WaitGone("button", "Light")
	page.WaitFocused("button", "Theme")
}

// A theme that was chosen stays, whatever the system's is.
func shellTheme(t *testing.T, site *browser.Site) {
	page := browser.Open(t, browser.Phone, browser.Light)
	page.Remember(browser.ReadToken)
	await(page, site.Page("overview"), "Overview")
	const ground = "getComputedStyle(document.body).backgroundColor"
	light := browser.Eval[string](page, ground)
	choose := func(theme string) {
		page.Click("button", "Theme")
		page.In("#topbar").Click("button", theme)
	}
	choose("Dark")
	page.Poll("it is dark", ground+" !== "+browser.JS(light))
	dark := browser.Eval[string](page, ground)
	page.Reload()
	page.WaitText("#topbar", "live")
	if got := browser.Eval[string](page, ground); got != dark {
		t.Errorf("loaded again the page is %s, want %s", got, dark)
	}
	choose("System")
	page.Poll("it is light", ground+" === "+browser.JS(light))
}

// The activity list marks an undone action, also after it is reopened.
func shellUndone(t *testing.T, site *browser.Site) {
	page := browser.Open(t, browser.Desktop, browser.Light)
	page.Remember(browser.OperateToken)
	await(page, site.Page("explain"), "Explain")
	browser.Eval[any](page, "import('./shell/dialog.js').then(({toast}) => { toast({text: 'It was done.', undo: async () => {}}); })")
	page.Click("button", "Activity*")
	list := page.In(".activity")
	list.WaitText("", "It was done.")
	list.Click("button", "Undo")
	list.WaitText("", "Undone: It was done.")
	for range 2 {
		page.Poll("it says that it is undone", "document.querySelector('.activity > :last-child .badge')?.innerText === 'Undone'")
		if list.Has("button", "Undo") {
			t.Error("what is undone can be undone")
		}
		page.Click("button", "Activity*") // to and again
		page.Click("button", "Activity*")
	}
}
