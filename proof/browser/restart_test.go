// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"testing"

	"github.com/metehq/mete/proof/browser"
)

// samples is an expression for the number of samples that the page holds.
const samples = "import('./shell/live.js').then(m => m.live.samples.length)"

// During a restart of the server, the page reports it, keeps its data and reconnects. The chart has a gap
// for that time.
func TestRestart(t *testing.T) {
	t.Parallel()
	site := browser.Serve(t, slowPolicy)
	visit(site)
	site.Take(4, searchBy("zoe"))
	page := browser.Open(t, browser.Desktop, browser.Light)
	page.Remember(browser.ReadToken)
	await(page, site.Page("overview"), "Overview")
	key := browser.Open(t, browser.Desktop, browser.Light)
	key.Remember(browser.OperateToken)
	await(key, keyPage(site, searchKey("zoe")), "Key")
	key.WaitText(".readout", "6 of 10 tokens")
	page.Poll("there is a past", samples+".then(n => n > 3)")
	browser.Eval[any](page, "window.notReloaded = true")
	before := browser.Eval[int](page, samples)

	page.Tolerate("net::ERR_", "status of 503") // while it is gone
	key.Tolerate("net::ERR_", "status of 503", "status of 404")
	if err := site.Process.Stop(); err != nil {
		t.Fatal(err)
	}
	page.WaitText("#topbar", "Reconnecting")
	if got := browser.Eval[int](page, samples); got < before {
		t.Errorf("%d samples without the server, want the %d that there were", got, before)
	}
	page.Axe()
	page.Screenshot("reconnecting")
	key.WaitText(".live-state", "reconnecting")
	key.WaitText(".readout", "Last known state")
	key.Screenshot("key-reconnecting")

	site.Start()
	page.WaitText("#topbar", "Live")
	page.WaitText("#toasts", "restarted")
	key.WaitText(".live-state", "live")
	key.WaitText(".readout", "10 of 10 tokens") // its store is in memory
	key.Screenshot("key-reconnected")
	visit(site)
	page.Poll("the past goes on", samples+".then(n => n > "+browser.JS(before)+")")
	page.WaitText("#main", "Allowed")
	if !browser.Eval[bool](page, "window.notReloaded === true") {
		t.Error("the page was loaded again")
	}
	page.Screenshot("restarted")
}
