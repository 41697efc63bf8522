// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/metehq/mete/proof/browser"
)

const exportLine = `curl 'https://api.example.com/v1/export/all?format=csv' \
  -X POST -H 'X-Customer: CUSTOMER' -H 'Accept-Language: en' --compressed --max-time 30`

func TestExplain(t *testing.T) {
	t.Parallel()
	runTogether(t, browser.Serve(t, mixedPolicy), part{"looks", explainLooks}, part{"texts", explainTexts}, part{"address", explainAddress},
		part{"form", explainForm}, part{"overrides", explainOverrides}, part{"refused", explainRefused})
}

// The page explains the decision about a request step by step and spends nothing.
func explainLooks(t *testing.T, site *browser.Site) {
	browser.Each(t, func(t *testing.T, size browser.Size, theme browser.Theme) {
		page := browser.Open(t, size, theme)
		page.Remember(browser.OperateToken)
		customer := visitor(t)
		await(page, site.Page("explain"), "Explain")
		page.Axe()
		page.Screenshot("explain-empty")
		page.Fill("Paste a request", strings.ReplaceAll(exportLine, "CUSTOMER", customer))
		page.Click("button", "Parse and explain")
		page.WaitText(".verdict", "Allowed")
		page.WaitText(".verdict", "2 of 3 tokens left by rule exports")
		for _, text := range []string{"ignored: --max-time 30", "No rule uses header:accept, header:accept-encoding, header:accept-language", "query:format"} {
			page.WaitText(".request-said", text)
		}
		for _, text := range []string{
			"jwt:plan", "absent", `"enterprise" or "partner"`, "20 of 20 before, 19 after; cost 1", "3 of 3 before, 2 after; cost 1",
			"exports:x-customer=" + customer, "No tokens were spent.",
		} {
			page.WaitText(".trace", text)
		}
		page.CheckNoOverflow()
		page.Axe()
		page.ScreenshotAll("explain-allowed")

		if allowed, denied := site.Take(4, exportBy(customer)); allowed != 3 || denied != 1 {
			t.Errorf("after the explanation %d are allowed and %d denied, want 3 and 1: nothing is spent", allowed, denied)
		}
		page.Click("button", "Explain again")
		page.WaitText(".verdict", "Denied")
		page.WaitText(".verdict", "by rule exports: 0 of 3 tokens left, and it costs 1")
		page.WaitText(".verdict", "Allowed in")
		page.CheckNoOverflow()
		page.Axe()
		page.ScreenshotAll("explain-denied")
	})
}

// The text field accepts a command, a raw request or attributes. Errors name their position.
func explainTexts(t *testing.T, site *browser.Site) {
	page := browser.Open(t, browser.Desktop, browser.Light)
	page.Remember(browser.OperateToken)
	page.Tolerate("status of 400")
	await(page, site.Page("explain"), "Explain")
	for _, c := range []struct{ text, want string }{
		{"POST /login HTTP/1.1\nHost: example.com\nX-Session-Key: s1\n\nuser=me", "everybody"},
		{"ip=192.0.2.7\nPOST https://www.example.com/login", "login:ip=192.0.2.7"},
		{"curl --json '{}' http://api.example.com/v1/chat -H 'X-Max-Tokens: 9000' -H 'Authorization: Bearer e30.eyJzdWIiOiJ1LTEifQ.x'", "22,000 after; cost 8,000"},
		{"curl http://api.example.com/v1/x", "no limit applies"},
	} {
		page.Fill("Paste a request", c.text)
		page.Press("Control+Enter")
		page.WaitText(".trace", c.want)
	}
	page.Fill("Paste a request", "curl http://h/ \\\n  --max-tme 5")
	page.Press("Control+Enter")
	page.WaitText(".request-said", "line 2, column 3: curl option --max-tme is not supported; did you mean --max-time?")
	page.Poll("the mistake is selected", "document.activeElement.id.endsWith('-text') && getSelection().toString() === '--max-tme'")
	page.Axe()
	page.Screenshot("explain-mistake")
}

// An explanation has an address, which others can open; what may be a credential is not
// in it.
func explainAddress(t *testing.T, site *browser.Site) {
	page := browser.Open(t, browser.Desktop, browser.Light)
	page.Remember(browser.OperateToken)
	await(page, site.Page("explain"), "Explain")
	page.Fill("Paste a request", "curl -X POST http://example.com/login -H 'X-Session-Key: hunter2'")
	page.Click("button", "Parse and explain")
	page.WaitText(".explain-result", "No tokens were spent.")
	page.Poll("the address has the request, and not the value", "location.hash.includes('a.path=%2Flogin') && location.hash.includes('without=header%3Ax-session-key') && !location.hash.includes('hunter2')")
	address := page.URL()
	if shown := page.Text("#main"); strings.Contains(shown, "hunter2") {
		t.Errorf("the page shows the value: %s", shown)
	}

	other := browser.Open(t, browser.Desktop, browser.Light)
	other.Remember(browser.OperateToken)
	await(other, address, "Explain")
	other.WaitText(".request-said", "omits the value of header:x-session-key")
	if got := other.Value("Value of path"); got != "/login" {
		t.Errorf("the path is %q, want /login", got)
	}
	other.Fill("Value of header:x-session-key", "hunter2")
	other.Click("button", "Explain")
	other.WaitText(".explain-result", "No tokens were spent.")
}

// Requests can be put together by hand, and without a mouse.
func explainForm(t *testing.T, site *browser.Site) {
	page := browser.Open(t, browser.Desktop, browser.Dark)
	page.Remember(browser.OperateToken)
	await(page, site.Page("explain?rule=exports"), "Explain")
	page.WaitText(".verdict", "2 of 3 tokens left by rule exports")
	page.TabTo("textbox", "Value of path")
	page.Fill("Value of path", "/v1/other")
	page.Press("Enter")
	page.WaitText(".verdict", "19 of 20 tokens left by rule free, limit free/burst")

	page.TabTo("button", "Add an attribute")
	page.Press("Enter")
	page.WaitFocused("combobox", "Attribute")
	page.Type("jwt:plan")
	page.Press("Tab")
	page.Type("pro")
	page.Press("Enter")
	page.WaitText(".verdict", "199 of 200 tokens left by rule paid")

	page.Fill("Cost", "none")
	page.Press("Enter")
	page.WaitText(".request-said", "The cost must be a number above 0")
	page.Fill("Cost", "500")
	page.Press("Enter")
	page.WaitText(".verdict", "Waiting does not help.")
	page.Fill("Cost", "")

	page.Click("button", "Remove jwt:plan")
	page.Click("button", "Remove header:x-customer")
	page.Click("button", "Explain")
	page.WaitText(".verdict", "Allowed")
	page.WaitText(".trace", "a value for the key")

	page.Click("button", "exports")
	page.WaitText(".verdict", "2 of 3 tokens left by rule exports")
}

// Overrides that decide are named.
func explainOverrides(t *testing.T, site *browser.Site) {
	page := browser.Open(t, browser.Phone, browser.Light)
	page.Remember(browser.ReadToken)
	await(page, site.Page("explain?a.path=/wp-login.php"), "Explain")
	page.WaitText(".verdict", "Denied")
	page.WaitText(".trace", "This override decides regardless of the rules: wp-login")
	await(page, site.Page("explain?a.path=/v1/x&a.host=api.example.com&a.jwt:plan=pro&a.header:x-customer=acme-corporation"), "Explain")
	page.WaitText(".trace", "Override acme-launch")
	page.WaitText(".trace", "799 after")
	page.Axe()
	page.ScreenshotAll("explain-override")
}

// The page reports a request that the API rejects.
func explainRefused(t *testing.T, site *browser.Site) {
	if status, answer := site.Ask(http.MethodPost, site.AdminURL+"/v1/request", browser.ReadToken, map[string]string{"text": ""}); status != http.StatusBadRequest {
		t.Errorf("an empty text: %d %s", status, answer)
	}
	page := browser.Open(t, browser.Desktop, browser.Light)
	page.Remember(browser.ReadToken)
	page.Tolerate("status of 400")
	await(page, site.Page("explain?a.headers:x=1"), "Explain")
	page.WaitText(".explain-result", "Cannot explain this request.")
	page.WaitText(".explain-result", `did you mean "header:x"?`)
}
