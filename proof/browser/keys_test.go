// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/proof/browser"
)

// These buckets hardly refill, so only the test changes their levels.
const slowPolicy = `rules:
  - name: search
    limit_keys: ["header:x-user"]
    match: {path: "/search*"}
    algorithm_config: {rate: 1/100d, burst: 10}
  - name: strict
    group: strict
    mode: shadow
    limit_keys: ["header:x-user"]
    algorithm_config: {rate: 1/100d, burst: 3}
  - name: words
    group: words
    limit_keys: ["query:q"]
    algorithm_config: {rate: 1/100d, burst: 2}
`

// alice is a key.
var alice = searchKey("alice")

// searchKey is the key of a user.
func searchKey(user string) string { return "search:x-user=" + user }

// searchBy is a request of a user.
func searchBy(user string) browser.Attributes {
	return browser.Attributes{"header:x-user": user, "path": "/search"}
}

// visitor is a user of a subtest's own: those share a site.
func visitor(t *testing.T) string {
	t.Helper()
	_, name, _ := strings.Cut(t.Name(), "/")
	return strings.NewReplacer("_", "-", "/", "-").Replace(name)
}

// keyPage is the URL of a key's page.
func keyPage(site *browser.Site, key string) string {
	return site.Page("key?key=" + url.QueryEscape(key))
}

// askJSON asks the API as a chief does.
func askJSON[T any](t *testing.T, site *browser.Site, path string) (answer T) {
	t.Helper()
	status, text := site.Ask(http.MethodGet, site.AdminURL+path, browser.ConfigureToken, nil)
	if status != http.StatusOK {
		t.Fatalf("%s: %d %s", path, status, text)
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return answer
}

// wantRemaining checks what a bucket holds, by the API.
func wantRemaining(t *testing.T, site *browser.Site, key, want string) {
	t.Helper()
	if got := askJSON[api.Bucket](t, site, "/v1/bucket?key="+url.QueryEscape(key)).Remaining.String(); got != want {
		t.Errorf("the bucket %s holds %s, want %s", key, got, want)
	}
}

// wantTake checks whether a user is let through, by the API.
func wantTake(t *testing.T, site *browser.Site, user string, want bool) {
	t.Helper()
	if allowed, _ := site.Take(1, searchBy(user)); (allowed == 1) != want {
		t.Errorf("a request of %s: allowed %v, want %v", user, !want, want)
	}
}

// wantAudit compares the API's audit records of a key with want, each "WHAT ACTION AUTHOR REASON".
func wantAudit(t *testing.T, site *browser.Site, key string, want ...string) {
	t.Helper()
	var got []string
	for _, e := range askJSON[api.Overrides](t, site, "/v1/overrides?audit=50").Audit {
		o := e.After
		if o == nil {
			o = e.Before
		}
		if o == nil || o.Key != key {
			continue
		}
		got = append(got, strings.Join([]string{string(e.What), string(o.Action), e.Author, e.Reason}, " "))
	}
	if !slices.Equal(got, want) {
		t.Errorf("the audit is %q, want %q", got, want)
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	site := browser.Serve(t, slowPolicy)
	runInTurn(t, site, part{"order", keysOrder}, part{"looks", keysLook})
	runTogether(t, site, part{"masked", keysMasked}, part{"hostile", keysHostile})
}

// The tabs show denied keys, keys near a limit and keys that would be denied, live.
func keysLook(t *testing.T, site *browser.Site) {
	browser.Each(t, func(t *testing.T, size browser.Size, theme browser.Theme) {
		page := browser.Open(t, size, theme)
		page.Remember(browser.OperateToken)
		user := visitor(t)
		await(page, site.Page("keys?rule=words"), "Keys")
		page.WaitText("#main", "No denied keys for rule words")
		page.Fill("Rule", "search")
		page.Poll("the rule is in the address", "location.hash.includes('rule=search')")

		site.Take(14, searchBy(user))
		page.Wait("rowheader", "x-user "+user+"*")
		page.WaitText("#main table", "4")
		site.Take(3, searchBy(user))
		page.Poll("the count goes on", countIs(user, "7"))

		page.Click("button", "Pause")
		site.Take(2, searchBy(user))
		page.Click("button", "Resume")
		page.Poll("the count goes on after a pause", countIs(user, "9"))

		page.CheckNoOverflow()
		page.Axe()
		page.Screenshot("keys")

		page.Fill("Rule", "All rules")
		page.Click("link", "Shadow")
		page.Wait("rowheader", "x-user "+user+"*")
		page.Click("link", "Near limit")
		page.Wait("rowheader", "x-user "+user+"*")
		page.Click("link", "Denied")
		page.Click("link", "x-user "+user)
		page.Wait("heading", "Key x-user "+user)
	})
}

// countIs is an expression for whether the row of a user has that count.
func countIs(user, count string) string {
	return "[...document.querySelectorAll('#main tbody tr')].some(r => r.innerText.includes(" + browser.JS(user) + ") && r.querySelector('.key-count').innerText === " + browser.JS(count) + ")"
}

// The user chooses the order of a table. Rows do not change places while the focus is in the table.
func keysOrder(t *testing.T, site *browser.Site) {
	site.Take(15, searchBy("zoe"))
	site.Take(12, searchBy("bob"))
	page := browser.Open(t, browser.Desktop, browser.Light)
	page.Remember(browser.OperateToken)
	await(page, site.Page("keys"), "Keys")
	first := func(user string) string {
		return "document.querySelector('#main tbody tr').innerText.includes(" + browser.JS(user) + ")"
	}
	page.Poll("who is denied most is first", first("zoe"))
	page.Click("button", "Key")
	page.Poll("the first in the alphabet is first", first("bob")+" && document.querySelector('#main th.col-key').ariaSort === 'ascending'")
	page.Click("button", "Key")
	page.Poll("the other way round", first("zoe")+" && document.querySelector('#main th.col-key').ariaSort === 'descending'")
	page.Click("button", "Count")
	page.Poll("by count again", first("zoe"))

	page.TabTo("link", "x-user zoe")
	site.Take(9, searchBy("bob"))
	page.Poll("the count is drawn", countIs("bob", "11"))
	if !browser.Eval[bool](page, first("zoe")) {
		t.Error("rows change places while the focus is in them")
	}
	page.TabTo("link", "Skip to the content")
	page.Poll("they do afterwards", first("bob"))
}

// A user with the read role sees buckets, but no keys and no actions.
func keysMasked(t *testing.T, site *browser.Site) {
	site.Take(14, searchBy("alice-in-wonderland"))
	page := browser.Open(t, browser.Phone, browser.Dark)
	page.Remember(browser.ReadToken)
	await(page, site.Page("keys"), "Keys")
	page.WaitText("#main", "To see keys, you need the role operate")
	page.Click("link", "x-user al… ~*")
	page.Wait("heading", "Key x-user al…")
	page.WaitText(".readout", "0 of 10 tokens")
	page.WaitText("#main", "requires the role operate; sign in")
	page.Poll("no action can be pressed", "[...document.querySelectorAll('.key-action button')].every(b => b.ariaDisabled === 'true')")
	page.Poll("decisions are made", "true")
	site.Take(1, searchBy("alice-in-wonderland"))
	page.WaitText(".decisions", "denied")
	if browser.Eval[bool](page, "document.documentElement.outerHTML.includes('wonderland') || location.href.includes('wonderland')") {
		t.Error("the page has the key, which its viewer may not see")
	}
	page.Axe()
	page.Screenshot("key-masked")
}

func TestKey(t *testing.T) {
	t.Parallel()
	runTogether(t, browser.Serve(t, slowPolicy), part{"looks", keyLooks}, part{"keyboard", keyKeyboard}, part{"reset", keyReset},
		part{"block", keyBlock}, part{"limit", keyLimit}, part{"let through", keyExempt})
}

// A key's page draws its bucket and each decision as it is made.
func keyLooks(t *testing.T, site *browser.Site) {
	browser.Each(t, func(t *testing.T, size browser.Size, theme browser.Theme) {
		page := browser.Open(t, size, theme)
		page.Remember(browser.OperateToken)
		user := visitor(t)
		site.Take(4, searchBy(user))
		await(page, keyPage(site, searchKey(user)), "Key")
		page.WaitText(".readout", "6 of 10 tokens")
		page.WaitText(".readout", "is allowed")
		page.WaitText(".live-state", "live")
		site.Take(8, searchBy(user))
		page.WaitText(".readout", "0 of 10 tokens")
		page.WaitText(".readout", "is denied")
		page.Poll("decisions are listed", "document.querySelectorAll('.decisions tbody tr').length === 8")
		page.Poll("the latest is first", "document.querySelector('.decisions tbody tr').innerText.includes('denied')")
		page.Poll("the level is said", "document.querySelector('.level-chart').ariaLabel.includes('holds 0 of 10 tokens')")
		page.Poll("the level is drawn", paintedIn("--chart-level"))
		page.Poll("what was allowed is drawn", paintedIn("--chart-allowed"))
		page.Poll("what was denied is drawn", paintedIn("--chart-denied"))
		page.Click("button", "30 s")
		page.CheckNoOverflow()
		page.Axe()
		page.ScreenshotAll("key")
	})
}

// paintedIn returns an expression that reports whether the chart has pixels of the color property.
func paintedIn(property string) string {
	return `(() => {
		const probe = document.body.appendChild(document.createElement('i'));
		probe.style.color = 'var(` + property + `)';
		const [r, g, b] = getComputedStyle(probe).color.match(/[\d.]+/g).map(Number);
		probe.remove();
		const canvas = document.querySelector('.level-chart canvas');
		const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
		for (let i = 0; i < pixels.length; i += 4) {
			if (pixels[i + 3] > 200 && Math.abs(pixels[i] - r) + Math.abs(pixels[i + 1] - g) + Math.abs(pixels[i + 2] - b) < 24) return true;
		}
		return false;
	})()`
}

// The drawing can be read with the keyboard, too.
func keyKeyboard(t *testing.T, site *browser.Site) {
	page := browser.Open(t, browser.Desktop, browser.Light)
	page.Remember(browser.OperateToken)
	await(page, keyPage(site, alice), "Key")
	page.WaitText(".readout", "10 of 10 tokens")
	page.TabTo("image", "The bucket holds 10 of 10 tokens*")
	page.Press("ArrowLeft")
	page.WaitText(".level-frame [role=status]", "now: 10 tokens")
	page.Press("ArrowLeft")
	page.WaitText(".level-frame [role=status]", "1.0 s ago")
	page.Press("ArrowRight")
	page.WaitText(".level-frame [role=status]", "now: 10 tokens")
	page.Press("Escape")
	page.Poll("the reading is gone", "document.querySelector('.level-reading').textContent === ''")
}

// The page marks values that the bucket's key contains as hashes.
func TestKeys_Hashed(t *testing.T) {
	t.Parallel()
	site := browser.Serve(t, "rules: [{name: api, limit_keys: [\"header:x-api-key\"], algorithm_config: {rate: 1/10h, burst: 2}}]\n")
	site.Take(4, browser.Attributes{"header:x-api-key": "k1"})
	page := browser.Open(t, browser.Desktop, browser.Light)
	page.Remember(browser.OperateToken)
	await(page, site.Page("keys"), "Keys")
	page.WaitText("#main", "~ marks the hash")
	page.Click("link", "*x-api-key*")
	page.WaitText(".key-facts", "~ marks the hash")
	page.Axe()

	looker := browser.Open(t, browser.Desktop, browser.Light)
	looker.Remember(browser.ReadToken)
	await(looker, site.Page("explain?a.header:x-api-key=k1"), "Explain")
	looker.WaitText(".step-key", "api:x-api-key=~…")
	looker.Poll("the key, which no bucket has, is no link", "document.querySelector('.step-key a') === null")
}

// The page of a key lists the slots that requests hold. Only operators see IDs with which they can release them.
func TestKey_Slots(t *testing.T) {
	t.Parallel()
	site := browser.Serve(t, "rules: [{name: jobs, limit_keys: [\"query:tenant\"], algorithm: concurrency, max: 3, lease: 1h}]\n")
	acme := browser.Attributes{"query:tenant": "acme"}
	page := browser.Open(t, browser.Phone, browser.Dark)
	page.Remember(browser.OperateToken)
	await(page, keyPage(site, "jobs:tenant=acme"), "Key")
	page.WaitText(".key-slots", "No request holds a slot.")
	site.Take(2, acme)
	page.Poll("both slots are listed", "document.querySelectorAll('.key-slots tbody tr').length === 2")
	slot := browser.Eval[string](page, "document.querySelector('.slot-id').textContent")
	page.WaitText(".key-slots", " min")
	page.CheckNoOverflow()
	page.Axe()
	page.ScreenshotAll("key-slots")

	looker := browser.Open(t, browser.Desktop, browser.Light)
	looker.Remember(browser.ReadToken)
	await(looker, keyPage(site, "jobs:tenant=acme"), "Key")
	looker.WaitText(".key-slots", slot[:8]+"…")
	if browser.Eval[bool](looker, "document.documentElement.outerHTML.includes("+browser.JS(slot)+")") {
		t.Error("the page has the slot, with which its viewer could release it")
	}

	body := map[string]any{"attributes": acme, "slot": slot}
	if status, text := site.Ask(http.MethodPost, site.URL+"/v1/slots/release", "", body); status != http.StatusOK {
		t.Fatalf("release: %d %s", status, text)
	}
	page.Poll("the released slot is gone", "document.querySelectorAll('.key-slots tbody tr').length === 1 && !document.querySelector('.key-slots').innerText.includes("+browser.JS(slot)+")")
}

// If the store does not answer, the page reports it instead of a healthy state.
func TestKey_StoreGone(t *testing.T) {
	t.Parallel()
	redis := proctest.StartRedis(t)
	site := browser.Serve(t, slowPolicy, "store: redis://"+redis.Addr+"?timeout=2s\n")
	page := browser.Open(t, browser.Desktop, browser.Light)
	page.Remember(browser.OperateToken)
	site.Take(4, searchBy("alice"))
	await(page, keyPage(site, alice), "Key")
	page.WaitText(".live-state", "live")
	page.WaitText(".readout", "6 of 10 tokens")
	redis.Pause()
	page.WaitText(".live-state", "waiting")
	page.WaitText(".level-trouble", "The store is unavailable")
	page.WaitText(".readout", "Last known state")
	page.Axe()
	page.Screenshot("key-store-gone")
	redis.Resume()
	page.WaitText(".live-state", "live")
	page.WaitText(".readout", "6 of 10 tokens")
	page.WaitHidden(".level-trouble")
}
