// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"strings"
	"testing"

	"github.com/metehq/mete/proof/browser"
)

// hold keeps what the page asks back, of URLs with a text in them, until release.
func hold(page *browser.Page, text string) {
	browser.Eval[bool](page, `(() => {
		const ask = fetch;
		const held = new Promise((go) => { window.release = go; });
		window.asked = window.answered = 0;
		fetch = async (url, options) => {
			if (!String(url).includes(`+browser.JS(text)+`)) return ask(url, options);
			window.asked++;
			await held;
			const answer = await ask(url, options);
			setTimeout(() => { window.answered++; }, 50); // when it has been read
			return answer;
		};
		return true;
	})()`)
}

// goTo follows a link to another page of the dashboard.
func goTo(page *browser.Page, route string) {
	browser.Eval[string](page, "location.hash = "+browser.JS("#/"+route))
}

func release(page *browser.Page) {
	browser.Eval[bool](page, "(release(), true)")
	page.Poll("what was held back is answered", "answered > 0 && answered === asked")
}

func TestLate(t *testing.T) {
	t.Parallel()
	runTogether(t, browser.Serve(t, slowPolicy), part{"answers", lateAnswers}, part{"focus", lateFocus}, part{"token", lateToken})
}

// A late response does not overwrite a page that has changed since the request.
func lateAnswers(t *testing.T, site *browser.Site) {
	site.Take(2, browser.Attributes{"header:x-user": "late", "path": "/search"})
	open := func(t *testing.T, route, heading string) *browser.Page {
		page := browser.Open(t, browser.Desktop, browser.Light)
		page.Remember(browser.OperateToken)
		await(page, site.Page(route), heading)
		return page
	}
	t.Run("parameters change while a page is made", func(t *testing.T) {
		page := open(t, "overview", "Overview")
		hold(page, "v1/rules")
		goTo(page, "rules")
		page.Poll("the rules are asked for", "asked === 1")
		goTo(page, "rules?filter=strict")
		release(page)
		page.WaitText("#main", "1 of 3 rules")
		if got := page.URL(); !strings.HasSuffix(got, "?filter=strict") {
			t.Errorf("the address is %s, without the filter", got)
		}
	})
	t.Run("an explanation of a page that was left", func(t *testing.T) {
		page := open(t, "explain", "Explain")
		hold(page, "v1/explain")
		goTo(page, "explain?a.path=/search")
		page.Poll("it is asked for", "asked === 1")
		goTo(page, "keys")
		page.WaitText("#topbar .title", "Keys")
		release(page)
		if got := page.URL(); !strings.HasSuffix(got, "#/keys") {
			t.Errorf("the address is %s, of another page than is shown", got)
		}
	})
	t.Run("an action is pressed twice", func(t *testing.T) {
		page := open(t, "key?key=search:x-user%3Dlate", "Key")
		hold(page, "audit=0")
		page.Click("button", "Block")
		page.Click("button", "Block")
		release(page)
		page.Wait("dialog", "Block this key?")
		if n := browser.Eval[int](page, "document.querySelectorAll('dialog').length"); n != 1 {
			t.Errorf("%d dialogs ask, want 1", n)
		}
	})
	t.Run("overrides are filtered before there are any", func(t *testing.T) {
		page := open(t, "overview", "Overview")
		hold(page, "v1/overrides")
		goTo(page, "keys?kind=overrides")
		page.WaitVisible("[aria-label='Filter overrides']")
		page.Fill("Filter overrides", "abuse")
		release(page)
		page.WaitText("#main", "No override matches the filter")
	})
}

// A page of the same name is another page, too: it begins at its beginning.
func lateFocus(t *testing.T, site *browser.Site) {
	page := browser.Open(t, browser.Desktop, browser.Light)
	page.Remember(browser.OperateToken)
	await(page, site.Page("rules"), "Rules")
	page.Click("link", "search")
	page.Wait("heading", "search")
	page.WaitFocused("main", "Rules")
}

// A user who tries another token and cancels stays signed in.
func lateToken(t *testing.T, site *browser.Site) {
	page := browser.Open(t, browser.Desktop, browser.Light)
	page.Tolerate("status of 401")
	page.Remember(browser.OperateToken)
	await(page, site.Page("overview"), "Overview")
	page.Click("button", "Account operator")
	page.Click("button", "Sign in with another token")
	dialog := page.In("dialog[open]")
	dialog.Fill("Token", "wrong-token-0123456789")
	dialog.Click("button", "Sign in")
	page.WaitText("dialog", "rejected this token")
	browser.Eval[bool](page, "([...document.querySelectorAll('dialog')].forEach((d) => d.close()), true)")
	page.WaitText("#topbar", "operator")
	page.WaitText("#topbar", "live")
}

// At 320 pixels (1280 at 400%), no page scrolls sideways.
func TestNarrow(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 64)
	site := browser.Serve(t, strings.ReplaceAll(slowPolicy, "name: search", "name: "+long))
	page := browser.Open(t, browser.Narrow, browser.Light)
	page.Remember(browser.OperateToken)
	for route, heading := range map[string]string{"overview": "Overview", "rules": "Rules", "rules/" + long: "Rules", "keys": "Keys", "explain": "Explain"} {
		await(page, site.Page(route), heading)
		page.CheckNoOverflow()
	}
}
