// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/proof/browser"
)

// openKeyAsOperator is the page of a key.
func openKeyAsOperator(t *testing.T, site *browser.Site, size browser.Size, theme browser.Theme, key string) *browser.Page {
	t.Helper()
	page := browser.Open(t, size, theme)
	page.Remember(browser.OperateToken)
	await(page, keyPage(site, key), "Key")
	page.WaitText(".live-state", "live")
	return page
}

// A user refills a bucket, then undoes it.
func keyReset(t *testing.T, site *browser.Site) {
	user := visitor(t)
	key := searchKey(user)
	site.Take(8, searchBy(user))
	page := openKeyAsOperator(t, site, browser.Desktop, browser.Light, key)
	page.WaitText(".readout", "2 of 10 tokens")
	page.Click("button", "Reset")
	dialog := page.In("dialog[open]")
	dialog.Click("button", "Reset")
	dialog.WaitText("", "Reason is required")
	wantRemaining(t, site, key, "2")
	dialog.Fill("Reason", "their launch")
	page.Axe()
	page.Screenshot("key-reset")
	dialog.Click("button", "Reset")
	page.WaitText("#toasts", "8 tokens added")
	page.WaitText(".readout", "10 of 10 tokens")
	page.WaitText(".key-history", "their launch")
	wantRemaining(t, site, key, "10")

	page.In("#toasts").Click("button", "Undo")
	page.WaitText("#toasts", "Undone")
	page.WaitText(".readout", "2 of 10 tokens")
	page.WaitText(".key-history", "Reset undone")
	wantRemaining(t, site, key, "2")
	var done []string
	for _, a := range askJSON[api.Activities](t, site, "/v1/activity").Activity {
		if a.Key != key {
			continue // another part's
		}
		done = append(done, strings.Join([]string{a.What, a.By, a.Key, a.Reason}, " "))
	}
	if got, want := strings.Join(done, ", "), "bucket/take operator "+key+" undo, bucket/reset operator "+key+" their launch"; got != want {
		t.Errorf("the activity is %s, want %s", got, want)
	}
	if got := browser.Eval[int](page, "document.querySelectorAll('.key-history .audit-entry').length"); got != 2 {
		t.Errorf("the page of the key shows %d things that were done, want each of two once", got)
	}
	await(page, site.Page("keys?kind=overrides"), "Keys") // the audit that servers share
	page.WaitText(".audit", "Reset · 8 tokens")
	page.WaitText(".audit", "Reset undone · 8 tokens")
	page.WaitText(".audit", key)
}

// A block is made without a mouse, holds, and is taken back.
func keyBlock(t *testing.T, site *browser.Site) {
	user := visitor(t)
	key := searchKey(user)
	page := openKeyAsOperator(t, site, browser.Desktop, browser.Dark, key)
	wantTake(t, site, user, true)
	page.TabTo("button", "Block")
	page.Press("Enter")
	page.Wait("dialog", "Block this key?")
	page.WaitFocused("textbox", "Reason")
	page.Type("scrapes the catalogue")
	page.Screenshot("key-block")
	page.Press("Enter")
	page.WaitText("#toasts", "Blocked x-user "+user)
	page.WaitText(".key-facts", "blocked")
	page.WaitText(".readout", "is blocked")
	page.WaitText(".key-history", "scrapes the catalogue")
	page.WaitFocused("button", "Block")
	wantTake(t, site, user, false)
	wantTake(t, site, "bob", true)

	page.TabTo("button", "Undo")
	page.Press("Enter")
	page.WaitText("#toasts", "Undone")
	page.WaitText(".readout", "is allowed")
	wantTake(t, site, user, true)
	wantAudit(t, site, key, "made block operator scrapes the catalogue", "removed block operator undo")
}

// A user changes the limit of one key, then changes it again. Undo restores the first change. The dialog
// shows the server's errors.
func keyLimit(t *testing.T, site *browser.Site) {
	user := visitor(t)
	key := searchKey(user)
	site.Take(10, searchBy(user))
	page := openKeyAsOperator(t, site, browser.Phone, browser.Light, key)
	limit := func(capacity, reason string) *browser.Page {
		page.Click("button", "Other limit")
		page.Wait("dialog", "Change the limit of this key?")
		dialog := page.In("dialog[open]")
		dialog.Fill("Capacity", capacity)
		dialog.Fill("Reason", reason)
		dialog.Fill("Your name", "kim")
		return dialog
	}
	dialog := limit("many", "their launch")
	dialog.Click("button", "Set limit")
	dialog.WaitText("", "burst")
	page.Tolerate("status of 422")
	dialog.Fill("Capacity", "50")
	dialog.Fill("Duration", "Other…")
	dialog.Fill("Other duration", "soon")
	dialog.Click("button", "Set limit")
	dialog.WaitText("", "enter a number and a unit")
	dialog.Fill("Other duration", "90m")
	page.Axe()
	page.Screenshot("key-limit")
	dialog.Click("button", "Set limit")
	page.WaitText("#toasts", "capacity 50")
	page.WaitText(".readout", "40 of 50 tokens") // the 10 that were missing still are
	wantRemaining(t, site, key, "40")

	dialog = limit("15", "less will do")
	dialog.WaitText("", "This replaces")
	dialog.Click("button", "Set limit")
	page.WaitText(".readout", "of 15 tokens")
	got := askJSON[api.Overrides](t, site, "/v1/overrides").Overrides
	got = slices.DeleteFunc(got, func(o api.OverrideStatus) bool { return o.Key != key }) // drop the overrides of other parts
	if len(got) != 1 || string(got[0].Config) == "" {
		t.Errorf("%d overrides, want the second in the place of the first", len(got))
	}
	page.In("#toasts > :last-child").Click("button", "Undo")
	page.WaitText(".readout", "of 50 tokens")
	page.WaitText(".key-history", "their launch")
	wantAudit(t, site, key, "made limit kim their launch", "made limit kim less will do", "made limit kim their launch")
}

// An exempt key passes with an empty bucket until the user ends the exemption. That has an undo, too.
func keyExempt(t *testing.T, site *browser.Site) {
	user := visitor(t)
	key := searchKey(user)
	site.Take(10, searchBy(user))
	page := openKeyAsOperator(t, site, browser.Desktop, browser.Light, key)
	wantTake(t, site, user, false)
	page.Click("button", "Let through")
	dialog := page.In("dialog[open]")
	dialog.Fill("Reason", "incident 7")
	dialog.Fill("Duration", "1 day")
	dialog.Click("button", "Let through")
	page.WaitText(".readout", "is allowed, uncharged")
	wantTake(t, site, user, true)
	page.In(".key-history").Click("button", "End allow-*")
	dialog = page.In("dialog[open]")
	dialog.WaitText("", "incident 7")
	dialog.Fill("Reason", "it is over")
	dialog.Click("button", "End override")
	page.WaitText(".readout", "is denied")
	wantTake(t, site, user, false)
	page.In("#toasts > :last-child").Click("button", "Undo")
	page.WaitText(".readout", "is allowed, uncharged")
	wantTake(t, site, user, true)
	wantAudit(t, site, key, "made allow operator incident 7", "removed allow operator it is over", "made allow operator incident 7")
}

func TestOverrides(t *testing.T) {
	t.Parallel()
	runInTurn(t, browser.Serve(t, slowPolicy), part{"list", overridesList}, part{"of all", overridesOfAll}, part{"add a limit", overridesAddLimit})
}

// The list of overrides is filtered, added to and taken from.
func overridesList(t *testing.T, site *browser.Site) {
	browser.Each(t, func(t *testing.T, size browser.Size, theme browser.Theme) {
		user := visitor(t)
		page := browser.Open(t, size, theme)
		page.Remember(browser.OperateToken)
		await(page, site.Page("keys?kind=overrides"), "Keys")
		page.Click("button", "Add an override")
		dialog := page.In("dialog[open]")
		dialog.Fill("Attribute", "header:x-user")
		dialog.Fill("Value", user)
		dialog.Fill("Reason", "scrapes as "+user)
		page.Axe()
		dialog.Click("button", "Add override")
		page.WaitText("#toasts", "Blocked")
		wantTake(t, site, user, false)

		page.Fill("Filter overrides", "nobody")
		page.WaitText("#main", "No override matches the filter")
		page.Fill("Filter overrides", "scrapes as "+user)
		page.Poll("one is shown", "document.querySelectorAll('.overrides-table tbody tr').length === 1")
		page.CheckNoOverflow()
		page.Axe()
		page.Screenshot("overrides")
		page.Click("button", "End block-*")
		dialog = page.In("dialog[open]")
		dialog.Fill("Reason", "they stopped")
		dialog.Click("button", "End override")
		page.WaitText("#main", "No override matches the filter")
		page.WaitText(".audit", "they stopped")
		wantTake(t, site, user, true)
	})
}

// Another limit is added by the rule's attribute, too.
func overridesAddLimit(t *testing.T, site *browser.Site) {
	page := browser.Open(t, browser.Desktop, browser.Light)
	page.Remember(browser.OperateToken)
	await(page, site.Page("keys?kind=overrides"), "Keys")
	page.Click("button", "Add an override")
	dialog := page.In("dialog[open]")
	dialog.Fill("Action", "Other limit")
	dialog.Fill("Rule", "words")
	dialog.Fill("Attribute", "query:q")
	dialog.Fill("Value", "shoes")
	dialog.Fill("Tokens", "3")
	dialog.Fill("Every", "10h")
	dialog.Fill("Capacity", "5")
	dialog.Fill("Reason", "their sale")
	page.Screenshot("overrides-add")
	dialog.Click("button", "Add override")
	page.WaitText(".overrides-table", "3/10h, capacity 5")
	if allowed, denied := site.Take(6, browser.Attributes{"query:q": "shoes"}); allowed != 5 || denied != 1 {
		t.Errorf("of 6 requests %d are allowed and %d denied, want 5 and 1", allowed, denied)
	}
}

// Keys that are made to break pages are shown as text, and break nothing.
func keysHostile(t *testing.T, site *browser.Site) {
	hostile := []string{"<script>window.broken=1</script>", "<img src=x onerror=window.broken=1>", "\u202egnp.exe", "a\x00b\nc\x1b[31m", strings.Repeat("long", 2560), "'\"><svg/onload=window.broken=1>"}
	for _, q := range hostile {
		site.Take(4, browser.Attributes{"query:q": q})
	}
	// Not UTF-8, as it comes in a gateway's header.
	if status, _ := site.Ask(http.MethodPost, site.URL+"/v1/take", "", map[string]any{"attributes": map[string]string{"query:q": "\xff\xfe"}}); status != http.StatusOK {
		t.Fatalf("bytes that are no UTF-8: %d", status)
	}
	site.Take(3, browser.Attributes{"query:q": "\xff\xfe"})
	for _, size := range []browser.Size{browser.Desktop, browser.Phone} {
		page := browser.Open(t, size, browser.Light)
		page.Remember(browser.OperateToken)
		await(page, site.Page("keys?rule=words"), "Keys")
		page.Poll("all keys are there", "document.querySelectorAll('#main tbody tr').length === 7")
		page.WaitText("#main", "<script>window.broken=1</script>")
		page.WaitText("#main", `\u202egnp.exe`)
		page.WaitText("#main", `a\0b\nc\u001b[31m`)
		if raw := browser.Eval[bool](page, `/[\u0000-\u0008\u000b-\u001f\u202a-\u202e\u2066-\u2069]/.test(document.body.innerText)`); raw {
			t.Error("the page's text has characters that control something")
		}
		page.CheckNoOverflow()
		page.Axe()
		page.Screenshot("keys-hostile")
		for i := range 7 {
			page.Goto(site.Page("keys?rule=words"))
			page.Poll("all keys are there", "document.querySelectorAll('#main tbody tr').length === 7")
			browser.Eval[any](page, "document.querySelectorAll('#main .key-link')["+browser.JS(i)+"].click()")
			page.WaitText(".readout", "0 of 2 tokens")
			page.CheckNoOverflow()
		}
		page.Screenshot("key-hostile")
		if browser.Eval[bool](page, "window.broken === 1 || document.querySelector('#main script, #main img') !== null") {
			t.Error("a key became a part of the page")
		}
	}
}

// An operator makes an override for all requests. The page first explains its effect on all clients. Undo
// removes it.
func overridesOfAll(t *testing.T, site *browser.Site) {
	site.Take(10, searchBy("alice"))
	wantTake(t, site, "alice", false)
	browser.Each(t, func(t *testing.T, size browser.Size, theme browser.Theme) {
		page := browser.Open(t, size, theme)
		page.Remember(browser.ConfigureToken)
		await(page, site.Page("keys?kind=overrides"), "Keys")
		page.Click("button", "Add an override")
		dialog := page.In("dialog[open]")
		dialog.Fill("Action", "Break glass: limit nothing")
		dialog.WaitText("", "No client is limited until it ends.")
		if dialog.Has("textbox", "Attribute") || dialog.Has("combobox", "Attribute") {
			t.Error("break glass asks for an attribute")
		}
		page.CheckNoOverflow()
		page.Axe()
		page.Screenshot("overrides-break-glass")
		dialog.Click("button", "Add override")
		dialog.WaitText("", "Reason is required")
		wantTake(t, site, "alice", false)
		dialog.Fill("Reason", "the store is on fire")
		dialog.Fill("Duration", "15 minutes")
		dialog.Click("button", "Add override")
		page.WaitText(".overrides-table", "Break glass")
		wantTake(t, site, "alice", true)
		page.In("#toasts > :last-child").Click("button", "Undo")
		page.WaitText("#toasts", "Undone")
		wantTake(t, site, "alice", false)

		page.Click("button", "Add an override")
		dialog.Fill("Action", "Shadow: deny nothing")
		dialog.WaitText("", "No rule denies any request until it ends.")
		page.Screenshot("overrides-shadow")
		dialog.Fill("Applies to", "Requests with an attribute")
		dialog.Fill("Attribute", "header:x-user")
		dialog.Fill("Value", "alice")
		dialog.Fill("Reason", "their limit is looked at")
		dialog.Click("button", "Add override")
		page.WaitText(".overrides-table", "header:x-user = alice")
		wantTake(t, site, "alice", true)
		page.Click("button", "End shadow-*")
		dialog.Fill("Reason", "it was")
		dialog.Click("button", "End override")
		page.WaitText("#main", "No active overrides")
		wantTake(t, site, "alice", false)
	})
	page := browser.Open(t, browser.Desktop, browser.Light)
	page.Remember(browser.OperateToken)
	await(page, site.Page("keys?kind=overrides"), "Keys")
	page.Click("button", "Add an override")
	dialog := page.In("dialog[open]")
	dialog.WaitText("", "require the role configure")
	if got := browser.Eval[string](page, "[...document.querySelector('dialog[open] select').options].map((o) => o.value).join()"); got != "block,allow,limit" {
		t.Errorf("an operator may %s", got)
	}
}

// stagedPolicy has limits with more than another limit asks for.
const stagedPolicy = `rules:
  - name: search
    limit_keys: ["header:x-user"]
    algorithm_config: {rate: 10/1h, burst: 20, max_reserved: 2.5, staged_actions: [{threshold: 80, action: warn}, {threshold: 95, action: throttle, delay: 500ms}]}
  - name: daily
    group: daily
    limit_keys: ["header:x-user"]
    algorithm: fixed_window
    algorithm_config: {tokens: 10, window: 1d, start: 7h, capacity: 15}
  - name: twice
    group: twice
    limit_keys: ["query:q"]
    limits:
      - {name: few, algorithm: fixed_window, tokens: 10, window: 1d, staged_actions: [{threshold: 50.5, action: warn}, {threshold: 100, action: reject}]}
      - {name: many, rate: 10/1s, burst: 100}
`

// Another limit keeps of the rule's what it does not change; override.test.js has all cases.
func TestKey_LimitKeeps(t *testing.T) {
	t.Parallel()
	runTogether(t, browser.Serve(t, stagedPolicy), part{"the beginning", keyLimitKeepsItsBeginning}, part{"the rest", keyLimitKeepsTheRest})
}

// Another limit begins its windows where the rule's does.
func keyLimitKeepsItsBeginning(t *testing.T, site *browser.Site) {
	page := openKeyAsOperator(t, site, browser.Desktop, browser.Light, "daily:x-user=alice")
	page.Click("button", "Other limit")
	page.Poll("the dialog is open", "document.querySelector('dialog[open]') !== null")
	dialog := page.In("dialog[open]")
	dialog.Fill("Capacity", "30")
	dialog.Fill("Reason", "their launch")
	dialog.Click("button", "Set limit")
	page.WaitText(".readout", "of 30 tokens")
	list := askJSON[api.Overrides](t, site, "/v1/overrides").Overrides
	list = slices.DeleteFunc(list, func(o api.OverrideStatus) bool { return !slices.Equal(o.Rules, []string{"daily"}) }) // drop the override of the other part
	if len(list) != 1 || !strings.Contains(string(list[0].Config), `"start":"7h"`) || !strings.Contains(string(list[0].Config), `"capacity":30`) {
		t.Errorf("%+v, want one that starts at 7h", list)
	}
}

// A changed limit keeps the rule's staged_actions and max_reserved. This applies to a key and to an
// attribute, also if the override replaces another.
func keyLimitKeepsTheRest(t *testing.T, site *browser.Site) {
	want := func(match, kept string) {
		t.Helper()
		for _, o := range askJSON[api.Overrides](t, site, "/v1/overrides").Overrides {
			if string(o.Match) != match || slices.Equal(o.Rules, []string{"daily"}) {
				continue
			}
			if config := string(o.Config) + string(o.Limits); !strings.Contains(config, kept) {
				t.Errorf("the limit for %q is %s, want it to keep %s", match, config, kept)
			}
			return
		}
		t.Errorf("there is no override for %q", match)
	}
	const stages = `"max_reserved":2.5,"staged_actions":[{"threshold":80,"action":"warn"},{"threshold":95,"action":"throttle","delay":"500ms"}]`
	page := openKeyAsOperator(t, site, browser.Desktop, browser.Light, alice)
	for _, capacity := range []string{"30", "40"} {
		page.Click("button", "Other limit")
		page.Wait("dialog", "Change the limit of this key?")
		dialog := page.In("dialog[open]")
		dialog.WaitText("", "Unchanged: staged_actions (from 80% used requests get a warning, from 95% used each request waits 500ms)")
		dialog.WaitText("", "max_reserved (2.5)")
		dialog.Fill("Capacity", capacity)
		dialog.Fill("Reason", "their launch")
		dialog.Click("button", "Set limit")
		page.WaitText(".readout", "of "+capacity+" tokens")
		want("", stages)
	}
	page.Screenshot("key-limit-kept")

	await(page, site.Page("keys?kind=overrides"), "Keys")
	page.Click("button", "Add an override")
	dialog := page.In("dialog[open]")
	dialog.Fill("Action", "Other limit")
	dialog.WaitText("", "max_reserved (2.5)")
	dialog.Fill("Rule", "twice/few")
	dialog.WaitText("", "from 50.5% used requests get a warning")
	dialog.WaitNoText("", "max_reserved")
	dialog.Fill("Attribute", "query:q")
	dialog.Fill("Value", "shoes")
	dialog.Fill("Tokens", "15")
	dialog.Fill("Window", "1d")
	dialog.Fill("Reason", "their sale")
	page.Screenshot("overrides-add-limit")
	dialog.Click("button", "Add override")
	page.WaitText(".overrides-table", "query:q = shoes")
	want(`{"query:q":"shoes"}`, `"staged_actions":[{"threshold":50.5,"action":"warn"}]`)
}
