// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/metehq/mete/proof/browser"
)

func TestSignIn(t *testing.T) {
	t.Parallel()
	runTogether(t, visited(t), part{"asks", signInAsks}, part{"dialog", signInDialog}, part{"roles", signInRoles}, part{"says once", signInExplainsOnce}, part{"by link", signInByLink})
}

// Without a token the page asks for one and shows no data. A wrong token is reported.
func signInAsks(t *testing.T, site *browser.Site) {
	browser.Each(t, func(t *testing.T, size browser.Size, theme browser.Theme) {
		page := browser.Open(t, size, theme)
		page.Tolerate("status of 401")
		page.Goto(site.Page("rules"))
		page.Wait("dialog", "Sign in")
		if got := page.Text(""); strings.Contains(got, "everybody") {
			t.Errorf("without a token the page shows a rule: %s", got)
		}
		page.Axe()
		page.Screenshot("signin")

		dialog := page.In("dialog[open]")
		dialog.Click("button", "Sign in")
		page.WaitText("dialog", "is required")
		dialog.Fill("Token", "wrong-token-0123456789")
		dialog.Click("button", "Sign in")
		page.WaitText("dialog", "rejected this token")
		page.Axe()
		page.Screenshot("signin-wrong")
		page.SignIn(browser.ReadToken)
		page.WaitText("#main", "everybody")
		page.WaitText("#topbar", "live")

		// The tab keeps the token until the user signs out.
		page.Reload()
		page.WaitText("#main", "everybody")
		page.Click("button", "Account looker")
		page.WaitText("#topbar", "has the role read")
		page.Axe()
		page.Click("button", "Sign out")
		page.Wait("dialog", "Sign in")
		page.WaitNoText("#main", "everybody")
		page.Reload()
		page.Wait("dialog", "Sign in")
		if got := browser.Eval[int](page, "sessionStorage.length"); got != 0 {
			t.Errorf("%d things are kept after signing out", got)
		}
	})
}

// The dialog keeps the focus while it is open, and Escape closes it. After a cancel the page does not ask
// again.
func signInDialog(t *testing.T, site *browser.Site) {
	page := browser.Open(t, browser.Desktop, browser.Light)
	page.Tolerate("status of 401")
	page.Goto(site.Page("overview"))
	page.Wait("dialog", "Sign in")
	page.WaitFocused("textbox", "Token")
	for range 12 {
		page.Press("Tab")
		// Between two rounds it may be at the browser's own buttons.
		if !browser.Eval[bool](page, "document.activeElement === document.body || !!document.activeElement.closest('dialog')") {
			t.Fatalf("Tab leaves the dialog for %s", page.Focused())
		}
	}
	page.Press("Escape")
	page.WaitGone("dialog", "Sign in")
	page.WaitText("#topbar", "not connected")
	if page.Has("dialog", "*") {
		t.Error("who closed the dialog is asked again")
	}

	// From the menu one can, and the focus comes back to it.
	page.TabTo("button", "Account Sign in")
	page.Press("Enter")
	page.TabTo("button", "Sign in")
	page.Press("Enter")
	page.WaitFocused("textbox", "Token")
	page.Press("Escape")
	page.WaitGone("dialog", "Sign in")
	page.WaitFocused("button", "Account Sign in")
	page.SignIn(browser.ConfigureToken)
	page.WaitText("#topbar", "live")
	page.Wait("button", "Account chief")
}

// A role shows what it may, in the words of the server.
func signInRoles(t *testing.T, site *browser.Site) {
	for token, see := range map[string]bool{browser.ReadToken: false, browser.OperateToken: true, browser.ConfigureToken: true} {
		page := browser.Open(t, browser.Desktop, browser.Light)
		page.Remember(token)
		await(page, site.Page("keys"), "Keys")
		visit(site) // what is listed was denied in the last minute
		page.WaitText("#main", "search")
		page.Poll("keys are there", "document.querySelector('#main').innerText.match(/alice|~/)")
		if got := strings.Contains(page.Text("#main"), "alice"); got != see {
			t.Errorf("a key is shown to %s: %v, want %v", token, got, see)
		}
	}
}

// The page explains once where to find a token, also if the error explains it, too.
func signInExplainsOnce(t *testing.T, site *browser.Site) {
	page := browser.Open(t, browser.Desktop, browser.Light)
	page.Remember(browser.ReadToken)
	await(page, site.Page("explain"), "Explain")
	browser.Eval[any](page, `import('./shell/session.js').then(({me, publish, signIn}) => {
		publish({...me(), sign_in: 'Kim has tokens.'});
		signIn('this takes a token of the role read. Kim has tokens.'); // and is not waited for
	})`)
	page.WaitText("dialog[open]", "This takes a token of the role read. Kim has tokens.")
	if n := browser.Eval[int](page, "document.querySelector('dialog[open]').innerText.split('Kim').length - 1"); n != 1 {
		t.Errorf("it is said %d times", n)
	}
}

// A link with a one-time token signs in, and leaves no token in the address. It works once.
func signInByLink(t *testing.T, site *browser.Site) {
	link := func() string {
		status, answer := site.Ask("POST", site.AdminURL+"/dashboard/link", browser.OperateToken, nil)
		var made struct{ Token string }
		if err := json.Unmarshal([]byte(answer), &made); status != 200 || err != nil {
			t.Fatalf("a link: %d %s, %v", status, answer, err)
		}
		return site.AdminURL + "/dashboard/#token=" + made.Token
	}
	page := browser.Open(t, browser.Desktop, browser.Light)
	once := link()
	page.Goto(once)
	page.WaitText("#topbar", "live")
	page.Click("button", "Account operator")
	page.WaitText("#topbar", "has the role operate")
	if got := browser.Eval[string](page, "location.href + document.referrer + history.length"); strings.Contains(got, "token") {
		t.Errorf("the address still has the token: %s", got)
	}
	_, token, _ := strings.Cut(once, "=")
	if got := browser.Eval[string](page, "sessionStorage.getItem('mete-token')"); got == "" || got == token || got == browser.OperateToken {
		t.Errorf("the tab keeps %q, want the token of a session", got)
	}
	page.Reload()
	page.WaitText("#topbar", "live")
	page.WaitText("#main", "everybody")

	// A second tab cannot use it. A link that is pasted into this one works.
	again := browser.Open(t, browser.Desktop, browser.Light)
	again.Tolerate("status of 401")
	again.Goto(once)
	again.WaitText("dialog", "link was used before or has expired")
	again.Goto(link())
	again.WaitGone("dialog", "Sign in")
	again.WaitText("#topbar", "live")
}
