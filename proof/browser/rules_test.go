// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metehq/mete/proof/browser"
)

// mixedPolicy has a rule of every kind.
const mixedPolicy = `bundle_version: 12
expires_at: 2126-03-01T00:00:00Z
policies:
  - id: api
    spec:
      selector: { hosts: api.example.com, pathPrefix: /v1 }
      rules:
        - name: enterprise
          description: Customers with a contract. Support knows them by name.
          limit_keys: ["header:x-customer"]
          match: { "jwt:plan": [enterprise, partner] }
          algorithm_config: { rps: 1000, burst: 2000 }
        - name: paid
          limit_keys: ["header:x-customer"]
          match: { "jwt:plan": [team, pro] }
          algorithm_config: { rps: 100, burst: 200 }
        - name: free
          limit_keys: ["header:x-customer"]
          limits:
            - { name: burst, rate: 1/1h, burst: 20 }
            - name: day
              algorithm: cost_based
              budget: 100000
              period: 1d
              staged_actions: [{ threshold: 80, action: warn }, { threshold: 95, action: throttle, delay: 500ms }]
        - name: exports
          group: exports
          description: An export reads whole tables.
          limit_keys: ["header:x-customer"]
          on_missing: deny
          match: { method: POST, path: "/v1/export/*" }
          algorithm: sliding_log
          algorithm_config: { tokens: 3, window: 1h }
        - name: tokens
          mode: shadow
          limit_keys: ["jwt:sub"]
          match: { path: [/v1/chat, /v1/complete] }
          on_store_error: closed
          deadline: 20ms
          headers: [draft-11, x]
          jitter: 10%
          algorithm_config: { rate: 90000/1m, burst: 30000, cost_source: "header:x-max-tokens", default_cost: 1000, min_cost: 100, max_cost: 8000 }
        - name: anonymous
          mode: 25%
          limit_keys: ["ip:address"]
          match: { "header:x-customer": { not: "*" } }
          algorithm: sliding_window
          algorithm_config: { tokens: 60, window: 1m }
  - id: site
    spec:
      selector: { hosts: [example.com, www.example.com] }
      rules:
        - name: login
          limit_keys: ["ip:address", "header:x-session-key"]
          match: { method: POST, path: /login }
          on_missing: empty
          algorithm: leaky_bucket
          algorithm_config: { rate: 10/1m, queue: 5 }
        - { name: old pages, mode: "off", limit_keys: [], match: { path: "/old/*" }, algorithm_config: { rps: 1, burst: 1 } }
      fallback_limit: { name: everybody, limit_keys: [], algorithm_config: { rps: 500, burst: 1000, shards: 4 } }
overrides:
  - id: acme-launch
    action: limit
    rules: [paid]
    match: { "header:x-customer": acme-corporation }
    algorithm_config: { rps: 400, burst: 800 }
    reason: launches on December 1
    author: sales@example.com
    expires_at: 2126-01-01T00:00:00Z
  - { id: wp-login, action: block, match: { path: /wp-login.php }, reason: nobody has this, author: security, expires_at: 2126-01-01T00:00:00Z }
`

// exportBy is a request for an export of a customer.
func exportBy(customer string) browser.Attributes {
	return browser.Attributes{"header:x-customer": customer, "method": "POST", "path": "/v1/export/all", "host": "api.example.com"}
}

func TestRules(t *testing.T) {
	t.Parallel()
	site := browser.Serve(t, mixedPolicy)
	runInTurn(t, site, part{"looks", rulesLook}, part{"reload", rulesReload})
	runTogether(t, site, part{"filter", rulesFilter}, part{"keyboard", rulesKeyboard}, part{"roles", rulesRoles}, part{"explain", rulesExplain})
}

// The rules are there with their limits, their traffic and the keys that are denied.
func rulesLook(t *testing.T, site *browser.Site) {
	browser.Each(t, func(t *testing.T, size browser.Size, theme browser.Theme) {
		page := browser.Open(t, size, theme)
		page.Remember(browser.OperateToken)
		await(page, site.Page("rules"), "Rules")
		customer := visitor(t)
		site.Take(9, exportBy(customer))
		for _, text := range []string{
			"enterprise", "everybody", `jwt:plan is "enterprise" or "partner"`, "header:x-customer is absent", "3 in any 1h, exactly",
			"enforced for 25%", "shadow", "fallback", "1 override", "wp-login", "the first match applies", "9 rules", "version 12",
		} {
			page.WaitText("#main", text)
		}
		page.Poll("what is denied shows", "[...document.querySelectorAll('.tree-rule')].some(r => /exports/.test(r.innerText) && /6[0-9](\\.\\d)?% denied/.test(r.innerText))")
		page.CheckNoOverflow()
		page.Axe()
		page.ScreenshotAll("rules")

		page.Click("button", "Details of exports")
		page.In(".tight-kind").Wait("link", "x-customer "+customer)
		page.WaitText(".tree-panel:not([hidden])", "the request is denied")
		page.Axe()
		page.ScreenshotAll("rules-open")

		page.Click("link", "exports")
		page.Wait("heading", "exports")
		page.WaitText("#main", "An export reads whole tables.")
		page.WaitText("#main", "let through, after 50ms")
		page.In(".tight-kind").Wait("link", "x-customer "+customer)
		page.CheckNoOverflow()
		page.Axe()
		page.ScreenshotAll("rule")
	})
}

// The filter keeps the rows that contain all of its words, updates the address and shows the number of
// rows.
func rulesFilter(t *testing.T, site *browser.Site) {
	page := browser.Open(t, browser.Desktop, browser.Light)
	page.Remember(browser.OperateToken)
	await(page, site.Page("rules"), "Rules")
	page.Fill("Filter rules", "EXPORT post")
	page.WaitText(".rules-bar", "1 of 9 rules")
	page.Wait("link", "exports")
	page.WaitGone("link", "free")
	page.Fill("Filter rules", "site sliding")
	page.Wait("heading", "No rule matches the filter")
	page.Click("button", "Show all rules")
	page.WaitFocused("searchbox", "Filter rules")
	page.Wait("link", "free")

	await(page, site.Page("rules?filter=sliding"), "Rules")
	page.WaitText(".rules-bar", "2 of 9 rules")
	page.Click("link", "anonymous")
	page.Wait("heading", "anonymous")
	page.Back()
	page.WaitText(".rules-bar", "2 of 9 rules")
}

// All of it can be done without a mouse.
func rulesKeyboard(t *testing.T, site *browser.Site) {
	page := browser.Open(t, browser.Desktop, browser.Dark)
	page.Remember(browser.OperateToken)
	await(page, site.Page("rules"), "Rules")
	page.TabTo("searchbox", "Filter rules")
	page.TabTo("button", "Details of tokens")
	page.Press("Enter")
	page.WaitText(".tree-panel:not([hidden])", "header:x-max-tokens: at least 100, at most 8000; otherwise 1000")
	page.WaitText(".tree-panel:not([hidden])", "denied, after 20ms")
	page.Poll("the button says that it is open", "document.activeElement.getAttribute('aria-expanded') === 'true'")
	page.TabTo("link", "Open the rule")
	page.Press("Enter")
	page.Wait("heading", "tokens")
	page.TabTo("link", "‹ All rules")
	page.Press("Enter")
	page.WaitText(".tree-panel:not([hidden])", "denied, after 20ms")
	page.TabTo("button", "Details of tokens")
	page.Press(" ")
	page.Poll("the details are closed", "!document.querySelector('.tree-panel:not([hidden])')")
}

// A policy that comes into force while somebody looks is shown.
func rulesReload(t *testing.T, site *browser.Site) {
	page := browser.Open(t, browser.Desktop, browser.Light)
	page.Remember(browser.OperateToken)
	await(page, site.Page("rules"), "Rules")
	changed := strings.NewReplacer("bundle_version: 12", "bundle_version: 13", "name: enterprise", "name: big-ones").Replace(mixedPolicy)
	if err := os.WriteFile(filepath.Join(site.Dir, "policy.yaml"), []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, answer := site.Ask(http.MethodPost, site.AdminURL+"/v1/reload", browser.ConfigureToken, nil); status >= 300 {
		t.Fatalf("reload: %d %s", status, answer)
	}
	page.Wait("link", "big-ones")
	page.WaitText("#main", "version 13")
	page.WaitGone("link", "enterprise")
}

// A user who cannot see keys sees the overrides without their keys.
func rulesRoles(t *testing.T, site *browser.Site) {
	page := browser.Open(t, browser.Desktop, browser.Light)
	page.Remember(browser.ReadToken)
	await(page, site.Page("rules/paid"), "Rules")
	page.WaitText("#main", "acme-launch")
	page.WaitText("#main", "header:x-customer …")
	page.WaitNoText("#main", "acme-corporation")

	other := browser.Open(t, browser.Desktop, browser.Light)
	other.Remember(browser.OperateToken)
	await(other, site.Page("rules/paid"), "Rules")
	other.WaitText("#main", "acme-corporation")
}

// Each rule links to the explain page.
func rulesExplain(t *testing.T, site *browser.Site) {
	site.Take(3, exportBy("example"))
	page := browser.Open(t, browser.Desktop, browser.Light)
	page.Remember(browser.OperateToken)
	await(page, site.Page("rules/exports"), "Rules")
	page.Poll("a request is there", "[...document.querySelectorAll('.attr-row')].some(r => r.querySelectorAll('input')[1].value === '/v1/export/')")
	page.Click("button", "Explain")
	page.WaitText(".verdict", "Denied")
	page.WaitText(".verdict", "by rule exports: 0 of 3 tokens left, and it costs 1")
	page.Axe()

	await(page, site.Page("rules/"+url.PathEscape("nobody's")), "Rules")
	page.Wait("heading", "Rule not found")
}
