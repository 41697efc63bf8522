// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/metehq/mete/proof/browser"
)

// gate is a script that holds back the responses to matching requests until open(). It then counts them.
const gate = `(pattern => {
	const real = window.fetch;
	let open;
	const opened = new Promise(resolve => { open = resolve; });
	window.gate = {open, asked: 0, came: 0, answers: [], of: part => gate.answers.filter(url => url.includes(part)).length};
	window.fetch = async (url, options) => {
		if (!pattern.test(url)) return real(url, options);
		gate.asked++;
		await opened;
		const answer = await real(url, options);
		gate.came++;
		gate.answers.push(String(url));
		if (!/event-stream/.test(answer.headers.get('Content-Type'))) return answer;
		const counted = new TransformStream({transform(chunk, out) { gate.came++; out.enqueue(chunk); }});
		return new Response(answer.body.pipeThrough(counted), answer);
	};
	return import('./shell/live.js').then(({live}) => {
		live.stop();
		Object.assign(live, {state: null, samples: [], seconds: [], summed: new Map(), since: 0, traffic: null, connection: 'connecting'});
		live.start();
		return true;
	});
})(/data\/(stream|watch)|v1\/(top|overrides|activity)/)`

// A livePage is one whose contents come and change by themselves.
type livePage struct {
	name, route string
	there       string // JavaScript: it is there, and has no data yet
	filled      string // JavaScript: it has
	role, press string // something of it that can be pressed, as soon as it is filled
	in          string
	went        string // JavaScript: it was pressed
	asks        string // what it asks for again and again
}

var livePages = []livePage{
	{"overview", "overview", "document.querySelector('.over')", "document.querySelectorAll('.top-key').length >= 3 && document.querySelector('#policy-card .facts')?.innerText.includes('policy.yaml')",
		"link", "*alice*", ".top-keys", "location.hash.startsWith('#/key?')", "v1/top"},
	{"busiest rules", "overview", "document.querySelector('.over')", "document.querySelectorAll('.rule-link').length >= 2",
		"link", "search", ".over-rules", "location.hash === '#/rules/search'", "v1/top"},
	{"rule", "rules/search", "document.querySelector('.rule')", "document.querySelectorAll('.tight-key').length >= 3",
		"link", "*alice*", ".tight-kind", "location.hash.startsWith('#/key?')", "v1/top"},
	{"keys", "keys?kind=denied", "document.querySelector('.keys-place')", "document.querySelectorAll('.key-link').length >= 3",
		"link", "x-user alice*", ".keys-table", "location.hash.startsWith('#/key?')", "v1/top"},
	{"overrides", "keys?kind=overrides", "document.querySelector('.overrides-place')", "document.querySelectorAll('.overrides-table tbody tr').length >= 1",
		"button", "End standing", ".overrides-table", "document.querySelector('dialog[open]')", "v1/overrides"},
	{"key", "key?key=search:x-user=alice", "document.querySelector('.key-grid')", "document.querySelector('.live-state').textContent === 'live' && document.querySelector('.key-history .override-item')",
		"button", "End standing", ".key-history", "document.querySelector('dialog[open]')", "v1/overrides"},
	{"actions", "key?key=search:x-user=alice", "document.querySelector('.key-grid')", "document.querySelector('.live-state').textContent === 'live' && document.querySelector('.key-history .override-item')",
		"button", "Let through", ".key-acts", "document.querySelector('dialog[open]')", "v1/overrides"},
}

// isMain reports whether a short test opens the page: a page of all keys, and one of a single key.
func (p *livePage) isMain() bool { return p.name == "overview" || p.name == "key" }

// startLiveSite is a site with data on all live pages.
func startLiveSite(t *testing.T) *browser.Site {
	t.Helper()
	site := browser.Serve(t, policy)
	visitMore(site)
	addLimitOverride(t, site, "standing")
	return site
}

// visitMore sends visits and 60 allowed requests. Without them the page would show the rate of denials
// first.
func visitMore(site *browser.Site) {
	visit(site)
	site.Take(60, browser.Attributes{"path": "/home", "method": "GET", "ip:address": "2001:db8::1"})
}

// addLimitOverride holds a key to another limit.
func addLimitOverride(t *testing.T, site *browser.Site, id string) {
	t.Helper()
	if status, text := site.Ask("PUT", site.AdminURL+"/v1/overrides", browser.ConfigureToken, map[string]any{
		"id": id, "action": "limit", "rules": []string{"search"}, "key": "search:x-user=alice", "algorithm_config": map[string]any{"rps": 1, "burst": 10},
		"reason": "their launch", "author": "kim", "expires_at": "2126-01-01T00:00:00Z"}); status/100 != 2 {
		t.Fatalf("the override: %d %s", status, text)
	}
}

// openGated is a page of the site behind the gate, from which one goes on by its address.
func openGated(t *testing.T, site *browser.Site, size browser.Size) *browser.Page {
	t.Helper()
	page := browser.Open(t, size, browser.Light)
	page.Remember(browser.ConfigureToken)
	await(page, site.Page("explain"), "Explain")
	if !browser.Eval[bool](page, gate) {
		t.Fatal("there is no gate")
	}
	return page
}

// Pages do not move while a user reads them. The press test adds rows to lists, so it runs last.
func TestStill(t *testing.T) {
	t.Parallel()
	site := startLiveSite(t)
	runInTurn(t, site, part{"places", stillPlaces}, part{"press", stillPress})
}

// A press becomes a click even if updates arrive between mouse down and mouse up.
func stillPress(t *testing.T, site *browser.Site) {
	var parts []part
	for _, live := range livePages {
		if testing.Short() && !live.isMain() {
			continue
		}
		parts = append(parts, part{live.name, func(t *testing.T, site *browser.Site) {
			page := openGated(t, site, browser.Desktop)
			visitMore(site)
			browser.Eval[any](page, "gate.open()")
			browser.Eval[any](page, "location.hash = "+browser.JS("#/"+live.route))
			page.Poll("the page is filled", live.filled)
			page.In(live.in).Hold(live.role, live.press, func() {
				before := browser.Eval[int](page, fmt.Sprintf("gate.of(%q)", live.asks))
				visitMore(site)
				addLimitOverride(t, site, "zz-"+strings.ReplaceAll(live.name, " ", "-")) // comes behind the other
				page.Poll("more has come", fmt.Sprintf("gate.of(%q) >= %d", live.asks, before+2))
			})
			page.Poll("it was clicked", live.went)
			page.Tolerate("abort")
		}})
	}
	runTogether(t, site, parts...)
}

// Controls keep their place and meaning when the first data arrive and at later updates. A short test takes
// the main pages in turn on a desktop and on a phone.
func stillPlaces(t *testing.T, site *browser.Site) {
	var parts []part
	for s, size := range []browser.Size{browser.Desktop, browser.Phone} {
		for i, live := range livePages {
			if live.name == "actions" || live.name == "busiest rules" {
				continue // pages that are there already
			}
			if testing.Short() && (i%2 != s || !live.isMain()) {
				continue
			}
			parts = append(parts, part{live.name + "/" + fmt.Sprint(size == browser.Phone), func(t *testing.T, site *browser.Site) {
				page := openGated(t, site, size)
				visitMore(site)
				browser.Eval[any](page, "location.hash = "+browser.JS("#/"+live.route))
				page.Poll("the page is there, and waits", live.there+" && gate.asked > 0")
				browser.Eval[any](page, places)
				page.Screenshot("still-" + live.name + "-waits")
				browser.Eval[any](page, "gate.open()")
				page.Poll("the page is filled", live.filled)
				wantPlaces(t, page, "the first data came")
				browser.Eval[any](page, places) // include the controls that appeared with the data
				before := browser.Eval[int](page, "gate.came")
				visitMore(site)
				page.Poll("more has come", fmt.Sprint("gate.came >= ", before+4))
				wantPlaces(t, page, "more data came")
				page.Screenshot("still-" + live.name)
			}})
		}
	}
	runTogether(t, site, parts...)
}

// places records the position of every control after the page has settled. Rows of a list may move, so
// controls inside have positions within the row.
const places = `(async () => {
	const frame = () => new Promise(requestAnimationFrame);
	await frame(); await frame();
	const all = [...document.querySelectorAll('#main :is(a, button, input, select, summary), #topbar button, #rail a')]
		.filter(node => !node.closest('#overrides-card')); // it stands below the name of a file, which is as long as it is
	const of = node => { const r = node.getBoundingClientRect(); return [r.x + scrollX, r.y + scrollY].map(Math.round).join(); };
	const ordered = node => node.closest('.top-keys, .over-rules tbody, .tight-list, .keys-table tbody');
	const seen = all.filter(node => node.checkVisibility({visibilityProperty: true})).map(node => [node, ordered(node) ? '' : of(node), (node.ariaLabel ?? node.innerText ?? '').slice(0, 40) || node.placeholder || node.tagName]);
	globalThis.moved = async () => {
		await frame(); await frame();
		return seen.map(([node, was, name]) => !node.isConnected ? name + ' is gone' : was && of(node) !== was ? name + ' was at ' + was + ' and is at ' + of(node) : '').filter(Boolean);
	};
	return true;
})()`

func wantPlaces(t *testing.T, page *browser.Page, when string) {
	t.Helper()
	if moved := browser.Eval[[]string](page, "moved()"); len(moved) > 0 {
		t.Errorf("when %s: %s", when, strings.Join(moved, "; "))
	}
}
