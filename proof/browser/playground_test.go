// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/internal/playground"
	"github.com/metehq/mete/proof/browser"
)

const playPolicy = `rules: [{name: free, limit_keys: ["ip:address"], algorithm_config: {rps: 10, burst: 20}}]`

// openPlayground is the page with something to play.
func openPlayground(t *testing.T, site *browser.Site, size browser.Size, theme browser.Theme, query string) *browser.Page {
	t.Helper()
	page := browser.Open(t, size, theme)
	page.Remember(browser.ReadToken)
	page.Goto(site.Page("playground" + query))
	waitResult(page)
	return page
}

// waitResult waits until the page has drawn the result.
func waitResult(page *browser.Page) {
	page.Poll("the limits are drawn", "[...document.querySelectorAll('.play-lane')].every(l => l.querySelector('.play-level, path.play-level')) && !!document.querySelector('.play-lane path.play-level')")
}

// grouped writes a number as the page does.
func grouped(n int) string {
	s := strconv.Itoa(n)
	if len(s) > 3 {
		s = s[:len(s)-3] + "," + s[len(s)-3:]
	}
	return s
}

func lane(i int) string { return ".play-lane-" + string(rune('a'+i)) }

func TestPlayground(t *testing.T) {
	t.Parallel()
	// In turn, since a server plays for one at a time.
	runInTurn(t, browser.Serve(t, playPolicy),
		part{"presets", playPresets},
		part{"looks", playLooks},
		part{"changes and links", playChanges},
		part{"exports", playExports},
		part{"plays", playPlayback},
		part{"keyboard", playKeyboard},
		part{"mistakes", playErrors},
		part{"hostile", playHostile},
		part{"broken links", playBrokenLinks})
}

// Each example shows its text, what the engine makes of it, and why.
func playPresets(t *testing.T, site *browser.Site) {
	page := openPlayground(t, site, browser.Desktop, browser.Light, "")
	for _, preset := range playground.Presets() {
		r, err := playground.Play(t.Context(), preset.Input)
		if err != nil {
			t.Fatal(err)
		}
		page.Fill("Example", preset.ID)
		page.WaitText(".play-text", preset.Text)
		for i, l := range r.Lanes {
			page.WaitText(lane(i)+" .play-title", l.Name)
			page.WaitText(lane(i)+" .play-limit", l.Limit)
			page.WaitText(lane(i)+" .play-totals", fmt.Sprintf("%s of %s", grouped(l.Totals.Allowed), grouped(l.Totals.Sent)))
			page.WaitText(lane(i)+" .play-words", l.Words[0])
			if l.Owes == 0 {
				page.Poll("nobody waits below a bucket without a queue", "!document.querySelector('"+lane(i)+" .bucket-queued')")
			}
		}
		page.Poll("there are as many limits", fmt.Sprintf("document.querySelectorAll('.play-lane').length === %d", len(r.Lanes)))
		if preset.Source != nil && preset.Source.Note != "" {
			page.WaitText(".play-note", preset.Source.Note)
		}
		page.Poll("the link names it", "location.hash === "+browser.JS("#/playground?preset="+preset.ID))
	}
}

// It can be read at every size, with all that it hides at first.
func playLooks(t *testing.T, site *browser.Site) {
	browser.Each(t, func(t *testing.T, size browser.Size, theme browser.Theme) {
		page := openPlayground(t, site, size, theme, "")
		page.Fill("Virtual time", "4500")
		page.WaitText(".play-readout", "Request 20 at 9.5 s: denied. Retry after 0.5 s.")
		page.WaitText(".play-amount", "0.9")
		page.CheckNoOverflow()
		page.Axe()
		page.Screenshot("playground")
		page.Fill("Example", "window-edge")
		page.WaitText(lane(3)+" .play-totals", "25 of 48")
		page.ClickAt(".play-traffic-card summary")
		page.ClickAt(lane(0) + " .play-form summary")
		page.ClickAt(lane(0) + " .play-table summary")
		page.ClickAt(lane(0) + " .play-policy summary")
		page.CheckNoOverflow()
		page.Axe()
		page.ScreenshotAll("playground-window-edge")
		page.Fill("Example", "at-a-time")
		page.WaitText(lane(0)+" .play-totals", "24 of 36")
		page.Poll("the form of slots is there", "['Requests at the same time', 'Each request lasts'].every(text => document.querySelector('"+lane(0)+" .play-form').textContent.includes(text))")
		page.CheckNoOverflow()
		page.Axe()
		page.ScreenshotAll("playground-at-a-time")
	})
}

// Each change updates the result and the link.
func playChanges(t *testing.T, site *browser.Site) {
	page := openPlayground(t, site, browser.Desktop, browser.Light, "?preset=burst-and-recover")
	page.WaitText(lane(0)+" .play-totals", "129 of 240")
	page.In(lane(0)).Fill("Capacity, slider", "0")
	page.WaitText(lane(0)+" .play-limit", "up to 1 at once, then 10/s")
	page.WaitText(lane(0)+" .play-totals", "31 of 240")
	page.In(lane(0)).Fill("Capacity", "20.5")
	page.WaitText(lane(0)+" .play-limit", "up to 20.5 at once")
	page.WaitText(".play-text", "Your own settings.")
	page.In(lane(0)).Click("button", "at intervals")
	page.WaitText(lane(0)+" .play-limit", "up to 20.5 at once; 10 come back every 1s")
	page.Click("button", "Add another limit")
	page.WaitText(lane(1)+" .play-limit", "may wait")
	page.In(lane(1)).Fill("Algorithm", "sliding_window")
	page.WaitText(lane(1)+" .play-limit", "10 in any 1s")
	page.ClickAt(".play-traffic-card summary")
	page.In(".play-phase:nth-child(1)").Fill("Phase 1", "poisson")
	page.In(".play-phase:nth-child(1)").Fill("Seed", "7")
	page.Click("checkbox", "Denied clients retry")
	page.WaitText(".play-comes", "random, 60 per second on average, for 3 s")
	page.WaitText(lane(0)+" .play-words", "Denied clients retry after their Retry-After")
	page.Poll("the link has it", "location.hash.includes('phase=poisson,rate=60,seed=7,seconds=3')")
	const shown = "[...document.querySelectorAll('.play-lane')].map(l => ['.play-title', '.play-limit', '.play-totals', '.play-words'].map(s => l.querySelector(s).textContent).join('|')).join('\\n')"
	want := browser.Eval[string](page, shown)
	_, query, _ := strings.Cut(page.URL(), "#/playground")
	again := openPlayground(t, site, browser.Desktop, browser.Light, query)
	again.Poll("the link shows the same", shown+" === "+browser.JS(want))
	again.Poll("the link stays as it is", "location.hash === "+browser.JS("#/playground"+query))
	again.In(lane(1)).Click("button", "Remove limit B")
	again.Poll("there is one limit left", "document.querySelectorAll('.play-lane').length === 1")
}

// The exported result equals the server's response byte by byte.
func playExports(t *testing.T, site *browser.Site) {
	page := openPlayground(t, site, browser.Desktop, browser.Light, "?preset=reserve")
	input := playground.Presets()[slices.IndexFunc(playground.Presets(), func(p api.PlayPreset) bool { return p.ID == "reserve" })].Input
	input.Export = true
	status, answer := site.Ask(http.MethodPost, site.AdminURL+"/v1/play", browser.ReadToken, input)
	var said struct {
		Lanes []struct{ Policy, Trace string }
	}
	if err := json.Unmarshal([]byte(answer), &said); status != http.StatusOK || err != nil {
		t.Fatalf("%d %v %s", status, err, answer)
	}
	browser.Eval[bool](page, `(() => {
		const made = URL.createObjectURL;
		URL.createObjectURL = blob => { blob.text().then(text => { window.saved = text; }); return made.call(URL, blob); };
		HTMLAnchorElement.prototype.click = function () { window.savedAs = this.download; };
		Object.defineProperty(navigator, 'clipboard', {value: {writeText: async text => { window.copied = text; }}});
		return true;
	})()`)
	page.ClickAt(".play-policy summary")
	for name, want := range map[string]string{"Download policy": said.Lanes[0].Policy, "Download trace": said.Lanes[0].Trace} {
		page.Click("button", name)
		page.Poll(name, "window.saved === "+browser.JS(want))
	}
	page.WaitText(".play-policy .code", `"queue": 5`)
	page.Click("button", "Copy the replay command")
	page.Poll("the command is copied", `window.copied === "mete replay --policy owes-up-to-5.json owes-up-to-5.jsonl"`)
	page.Click("button", "Copy link")
	page.Poll("the link is copied", "window.copied === location.href")
}

// The playback starts and stops on demand, and the user can send requests during it.
func playPlayback(t *testing.T, site *browser.Site) {
	page := openPlayground(t, site, browser.Desktop, browser.Light, "?lane=token_bucket,1/1s,capacity=2,name=Mine&phase=burst,count=1,seconds=40")
	page.WaitText(lane(0)+" .play-totals", "1 of 1")
	page.Click("button", "Play")
	page.Poll("time goes by", "Number.parseFloat(document.querySelector('.play-clock').textContent) > 0.5 && Number.parseFloat(document.querySelector('.play-clock').textContent) < 39")
	page.Click("button", "Pause")
	page.Wait("button", "Play")
	page.Fill("Virtual time", "5000")
	page.WaitText(".play-clock", "20.0 s")
	for i := range 3 {
		page.Click("button", "Send a request")
		page.WaitText(lane(0)+" .play-totals", fmt.Sprintf("of %d", i+2))
	}
	page.WaitText(lane(0)+" .play-totals", "3 of 4")
	page.WaitText(lane(0)+" .play-readout", "Request 4 at 20 s: denied. Retry after 1 s.")
	page.WaitText(".play-comes", "3 by hand")
	page.Poll("the link has them", "location.hash.endsWith('&hand=20,20,20')")
	page.ClickAt(".play-traffic-card summary")
	page.Click("button", "Remove them")
	page.WaitText(lane(0)+" .play-totals", "1 of 1")
}

// All of it works without a mouse.
func playKeyboard(t *testing.T, site *browser.Site) {
	page := openPlayground(t, site, browser.Desktop, browser.Light, "")
	page.TabTo("slider", "Virtual time")
	page.Press("Home")
	page.WaitText(".play-clock", "0.0 s")
	page.WaitText(".play-amount", "4")
	page.Press("End")
	page.WaitText(".play-clock", "22.0 s")
	page.TabTo("slider", "Capacity, slider")
	page.Press("ArrowRight")
	page.WaitText(lane(0)+" .play-limit", "up to 6 at once")
	page.WaitFocused("slider", "Capacity, slider")
	page.TabTo("combobox", "Algorithm") // around, and there is nothing that holds the focus
	page.TabTo("button", "at intervals")
	page.Press("Enter")
	page.WaitText(lane(0)+" .play-limit", "come back every")
	page.WaitFocused("button", "at intervals")
}

// Errors appear next to the wrong input, and the last result stays.
func playErrors(t *testing.T, site *browser.Site) {
	page := openPlayground(t, site, browser.Desktop, browser.Light, "")
	page.Tolerate("status of 422")
	field := page.In(lane(0) + " [data-place='/lanes/0/capacity']")
	field.Fill("Capacity", "0.0001")
	page.WaitText(lane(0)+" [data-place='/lanes/0/capacity'] .mistake", "thousandth")
	page.WaitText(lane(0)+" .play-totals", "21 of 29")
	page.Poll("the field says so", "document.querySelector('[data-place=\"/lanes/0/capacity\"] .play-number').getAttribute('aria-invalid') === 'true'")
	page.Axe()
	field.Fill("Capacity", "much")
	page.WaitText(lane(0)+" [data-place='/lanes/0/capacity'] .mistake", "not a number")
	field.Fill("Capacity", "7")
	page.WaitText(lane(0)+" .play-limit", "up to 7 at once")
	page.Poll("nothing is complained about", "[...document.querySelectorAll('.mistake')].every(m => m.hidden)")
}

// Hostile text does nothing, wherever it comes from.
func playHostile(t *testing.T, site *browser.Site) {
	page := openPlayground(t, site, browser.Desktop, browser.Light,
		"?lane=token_bucket,1/1s,capacity=5,name=%253Cimg%20src=x%20onerror=alert(1)%253E%E2%80%AE&phase=burst,count=1,seconds=3")
	page.WaitText(lane(0)+" .play-title", `<img src=x onerror=alert(1)>\u202e`)
	page.Tolerate("status of 422")
	const place = "[data-place='/traffic/phases/0/trace']"
	page.ClickAt(".play-traffic-card summary")
	page.In(".play-phase:nth-child(1)").Fill("Phase 1", "trace")
	page.WaitText(place+" .mistake", "no requests")
	page.Fill("Lines of an access log, or JSON lines", "<script>alert(1)</script>\n\u202e\x01")
	page.WaitText(place+" .mistake", "line 1: not an access log line")
	trace := ""
	for i := range 5 {
		trace += fmt.Sprintf("198.51.100.7 - <b>[x [21/Nov/2026:12:00:%02d +0000] \"GET /<script>alert(%d)</script> HTTP/1.1\" 200 1\n", 2*i, i)
	}
	page.Fill("Lines of an access log, or JSON lines", trace)
	page.WaitText(lane(0)+" .play-totals", "5 of 5")
	page.Poll("the link has the trace", "/phase=trace,z=[-_0-9A-Za-z]+$/.test(location.hash)")
	_, query, _ := strings.Cut(page.URL(), "#/playground")
	again := openPlayground(t, site, browser.Desktop, browser.Light, query)
	again.WaitText(lane(0)+" .play-totals", "5 of 5")
	if n := browser.Eval[int](again, "document.querySelectorAll('main img, main script, main b').length"); n != 0 {
		t.Errorf("%d elements came from hostile text", n)
	}
	long := ""
	for i := range 4000 {
		long += fmt.Sprintf("{\"at\":%d.%06d}\n", i, i*7919%1000003%1000000)
	}
	browser.Eval[bool](page, "(t => { t.value = "+browser.JS(long)+"; return t.dispatchEvent(new Event('input')); })(document.querySelector(\"[data-place='/traffic/phases/0/trace'] textarea\"))")
	page.WaitText(lane(0)+" .play-totals", "of 4,000")
	page.WaitText("#main [role=alert]", "too long for a link")
}

// For a link that the page cannot show, the page reports a broken link and loads an example. The cases are
// an invalid text and a wrong number of limits; playground.test.js has the others. The server rejects all
// other invalid input.
func playBrokenLinks(t *testing.T, site *browser.Site) {
	page := browser.Open(t, browser.Desktop, browser.Light)
	page.Remember(browser.ReadToken)
	page.Tolerate("status of 422")
	const lane1, phase = "lane=token_bucket,1/1s,capacity=5", "phase=steady,rate=1,seconds=3"
	for _, query := range []string{"?lane=magic", "?" + strings.Repeat(lane1+"&", 5) + phase} {
		page.Goto(site.Page("playground" + query))
		page.WaitText("#toasts", "The link cannot be read")
		page.Poll("the example stands there", "location.hash === '#/playground?preset=first-steps'")
		page.WaitText(lane(0)+" .play-totals", "21 of 29")
	}
	for query, want := range map[string]string{
		"?lane=token_bucket,NaN/1s,capacity=NaN&phase=steady,rate=1e9,seconds=-1":             "This is not a number",
		"?lane=token_bucket,1/1s,capacity=5&phase=steady,rate=1,seconds=10000000000":          "86400 s",
		"?lane=token_bucket,1/1s,capacity=5&phase=steady,rate=1000000000,seconds=5":           "one per microsecond",
		"?lane=token_bucket,1/1s,capacity=5,name=" + strings.Repeat("x", 10240) + "&" + phase: "longer than 40 bytes",
		"?lane=token_bucket,1/1s,capacity=5&phase=steady,rate=1,seconds=3&hand=1000":          "not before the end",
	} {
		page.Goto(site.Page("playground" + query))
		page.WaitText("#main", want)
		page.CheckNoOverflow()
	}
}
