// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/metehq/mete/proof/browser"
)

// gate has a page ask through a gate: what the server answers to what matches is held
// back until open(), and then counted as it comes.
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

// lively is a site of which all live pages have something to show.
func lively(t *testing.T) *browser.Site {
	t.Helper()
	site := browser.Serve(t, policy)
	visitMore(site)
	except(t, site, "standing")
	return site
}

// visitMore visits so that however often that is most requests are allowed: that they
// are not would be said above all else.
func visitMore(site *browser.Site) {
	visit(site)
	site.Take(60, browser.Attributes{"path": "/home", "method": "GET", "ip:address": "2001:db8::1"})
}

// except holds a key to another limit.
func except(t *testing.T, site *browser.Site, id string) {
	t.Helper()
	if status, text := site.Ask("PUT", site.AdminURL+"/v1/overrides", browser.ConfigureToken, map[string]any{
		"id": id, "action": "limit", "rules": []string{"search"}, "key": "search:x-user=alice", "algorithm_config": map[string]any{"rps": 1, "burst": 10},
		"reason": "their launch", "author": "kim", "expires_at": "2126-01-01T00:00:00Z"}); status/100 != 2 {
		t.Fatalf("the override: %d %s", status, text)
	}
}

// gated is a page of the site behind the gate, from which one goes on by its address.
func gated(t *testing.T, site *browser.Site, size browser.Size) *browser.Page {
	t.Helper()
	page := browser.Open(t, size, browser.Light)
	page.Remember(browser.ConfigureToken)
	await(page, site.Page("explain"), "Explain")
	if !browser.Eval[bool](page, gate) {
		t.Fatal("there is no gate")
	}
	return page
}

// What is pressed is clicked, however much comes from the server between mouse down and
// mouse up.
func TestStill_Press(t *testing.T) {
	t.Parallel()
	site := lively(t)
	for _, live := range livePages {
		t.Run(live.name, func(t *testing.T) {
			t.Parallel()
			page := gated(t, site, browser.Desktop)
			visitMore(site)
			browser.Eval[any](page, "gate.open()")
			browser.Eval[any](page, "location.hash = "+browser.JS("#/"+live.route))
			page.Poll("the page is filled", live.filled)
			page.In(live.in).Hold(live.role, live.press, func() {
				before := browser.Eval[int](page, fmt.Sprintf("gate.of(%q)", live.asks))
				visitMore(site)
				except(t, site, "zz-"+strings.ReplaceAll(live.name, " ", "-")) // comes behind the other
				page.Poll("more has come", fmt.Sprintf("gate.of(%q) >= %d", live.asks, before+2))
			})
			page.Poll("it was clicked", live.went)
			page.Tolerate("abort")
		})
	}
}

// What can be pressed keeps its place, and stays what it is, when the first data come
// and when more do.
func TestStill_Places(t *testing.T) {
	t.Parallel()
	site := lively(t)
	for _, size := range []browser.Size{browser.Desktop, browser.Phone} {
		for _, live := range livePages {
			if live.name == "actions" || live.name == "busiest rules" {
				continue // pages that are there already
			}
			t.Run(live.name+"/"+fmt.Sprint(size == browser.Phone), func(t *testing.T) {
				t.Parallel()
				page := gated(t, site, size)
				visitMore(site)
				browser.Eval[any](page, "location.hash = "+browser.JS("#/"+live.route))
				page.Poll("the page is there, and waits", live.there+" && gate.asked > 0")
				browser.Eval[any](page, places)
				page.Screenshot("still-" + live.name + "-waits")
				browser.Eval[any](page, "gate.open()")
				page.Poll("the page is filled", live.filled)
				wantPlaces(t, page, "the first data came")
				browser.Eval[any](page, places) // with those that have come
				before := browser.Eval[int](page, "gate.came")
				visitMore(site)
				page.Poll("more has come", fmt.Sprint("gate.came >= ", before+4))
				wantPlaces(t, page, "more data came")
				page.Screenshot("still-" + live.name)
			})
		}
	}
}

// places notes where everything is that can be pressed, once what is drawn is settled.
// Rows of a list may change places: they are looked at as parts of it.
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

// A list that changes keeps the nodes of what stays in it, with the focus and what is
// selected; where the focus was goes, a neighbour has it.
func TestStill_Keyed(t *testing.T) {
	t.Parallel()
	site := browser.Serve(t, policy)
	page := browser.Open(t, browser.Desktop, browser.Light)
	page.Remember(browser.OperateToken)
	await(page, site.Page("explain"), "Explain")
	for _, tt := range []struct{ name, run, want string }{
		{"in the order of the items", "list(['c', 'a']); list(['a', 'b', 'c']); list(['b', 'c', 'a'])", "bca, made cab"},
		{"what goes and comes is made anew", "list(['a', 'b']); list(['b']); list(['a', 'b'])", "ab, made aba"},
		{"the focus stays", "list(['a', 'b', 'c']); focus('b'); list(['c', 'b', 'd', 'a']); list(['b', 'a'])", "b*a, made abcd"},
		{"it is not moved", "list(['a', 'b', 'c', 'd']); focus('c'); watch('c'); list(['c', 'd', 'b', 'a']); list(['d', 'a', 'c'])", "dac*, made abcd"},
		{"the next one has it", "list(['a', 'b', 'c']); focus('b'); list(['a', 'c'])", "ac*, made abc"},
		{"or the one before", "list(['a', 'b', 'c']); focus('c'); list(['a', 'b'])", "ab*, made abc"},
		{"nothing is left", "list(['a']); focus('a'); list([])", ", made a, the focus is on the parent"},
		{"updated", "list(['a']); focus('a'); list(['a'], 1); list(['a'], 1); list(['a'], 2)", "a*, made a, updated a0a1a2"},
		{"made anew with another item, and keeps the focus", "fixed = true; list(['a', 'b']); focus('b'); list(['a', 'b']); list(['a', 'b'], 1)", "ab*, made abab"},
		{"two of one name", "list(['a', 'a']); list(['a', 'a', 'a'])", "aaa, made aaa"},
		{"what is selected stays", "list(['a', 'b', 'c']); getSelection().selectAllChildren(node('b')); watch('b'); list(['c', 'b', 'a']); if (getSelection().toString() !== 'b') wrong = 'nothing is selected'", "cba, made abc"},
	} {
		got := browser.Eval[string](page, `import('./ui/keyed.js').then(({keyed}) => {
			let [made, updated, fixed, wrong] = ['', '', false, ''];
			const parent = document.createElement('ul');
			const outer = document.createElement('div');
			outer.tabIndex = -1;
			outer.append(parent);
			document.body.append(outer);
			const make = (item) => {
				const li = document.createElement('li');
				const button = document.createElement('button');
				button.textContent = item.id;
				li.append(button);
				made += item.id;
				return fixed ? {node: li} : {node: li, update(now) { updated += now.id + now.n; }};
			};
			const update = keyed(parent, {id: item => item.id, make});
			const list = (ids, n = 0) => update(ids.map(id => ({id, n})));
			const node = id => [...parent.children].find(li => li.innerText === id);
			const focus = id => node(id).firstChild.focus();
			const seen = new MutationObserver(() => {});
			const watch = id => { const held = node(id); seen.observe(parent, {childList: true}); seen.held = held; };
			`+tt.run+`;
			if (seen.takeRecords().some(r => [...r.removedNodes, ...r.addedNodes].includes(seen.held))) wrong = 'it was moved';
			const shown = [...parent.children].map(li => li.innerText + (li.contains(document.activeElement) ? '*' : '')).join('');
			if (document.activeElement === outer) wrong = 'the focus is on the parent';
			outer.remove();
			return shown + ', made ' + made + (/[1-9]/.test(updated) && !fixed ? ', updated ' + updated : '') + (wrong && ', ' + wrong);
		})`)
		if got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// What is pressed is waited for until it is let go, and not until something else is; and
// where nobody says that it was let go, the next movement does.
func TestStill_Released(t *testing.T) {
	t.Parallel()
	site := browser.Serve(t, policy)
	page := browser.Open(t, browser.Desktop, browser.Light)
	page.Remember(browser.OperateToken)
	await(page, site.Page("explain"), "Explain")
	for _, tt := range []struct{ name, run, want string }{
		{"nothing", "", "free"},
		{"pressed", "pointer('down')", "held"},
		{"let go", "pointer('down'); pointer('up')", "free"},
		{"scrolled by a finger", "pointer('down'); pointer('cancel')", "free"},
		{"dragged", "pointer('down'); pointer('move', {buttons: 1})", "held"},
		{"let go where the page is not told", "pointer('down'); pointer('move', {buttons: 0})", "free"},
		{"moved after it was let go", "pointer('down'); pointer('up'); moving = setInterval(() => pointer('move', {buttons: 0}), 20)", "free"},
		{"another finger", "pointer('down'); pointer('down', {pointerId: 2, isPrimary: false}); pointer('up', {pointerId: 2, isPrimary: false})", "held"},
		{"the other button", "pointer('down', {button: 2})", "free"},
		{"a slider", "pointer('down', {}, slider)", "free"},
		{"a key", "key('down', ' ')", "held"},
		{"that is let go", "key('down', ' '); pointer('move', {buttons: 0}); key('up', ' ')", "free"},
		{"that goes on", "key('down', ' '); key('up', ' '); key('down', ' ', true)", "free"},
		{"a key beside the mouse", "pointer('down'); key('up', 'Shift')", "held"},
		{"another window", "pointer('down'); window.dispatchEvent(new Event('blur'))", "free"},
		{"another field", "pointer('down'); document.querySelector('#main').dispatchEvent(new Event('blur'))", "held"},
	} {
		got := browser.Eval[string](page, `import('./shell/press.js').then(async ({released}) => {
			let moving = 0;
			const main = document.querySelector('#main');
			const slider = document.createElement('input');
			slider.type = 'range';
			main.append(slider);
			const pointer = (what, how = {}, node = main) => node.dispatchEvent(new PointerEvent('pointer' + what, {pointerId: 1, isPrimary: true, bubbles: true, ...how}));
			const key = (what, name, repeat = false) => main.dispatchEvent(new KeyboardEvent('key' + what, {key: name, repeat, bubbles: true}));
			`+tt.run+`;
			const said = await Promise.race([Promise.resolve(released()).then(() => 'free'), new Promise(done => setTimeout(done, 2000, 'held'))]);
			clearInterval(moving);
			slider.remove();
			window.dispatchEvent(new Event('blur'));
			await released();
			return said;
		})`)
		if got != tt.want {
			t.Errorf("%s: %s, want it %s", tt.name, got, tt.want)
		}
	}
}

// A table of keys that is pointed at for long keeps the row, and not all that were there.
func TestStill_Held(t *testing.T) {
	t.Parallel()
	site := browser.Serve(t, policy)
	page := browser.Open(t, browser.Desktop, browser.Light)
	page.Remember(browser.OperateToken)
	await(page, site.Page("explain"), "Explain")
	got := browser.Eval[string](page, `import('./keys/table.js').then(({keyTable}) => {
		const table = keyTable({caption: 'Keys', kind: 'denied'});
		document.querySelector('#main').append(table.node);
		const at = new Date().toISOString();
		const look = n => table.update({at, since: at, rules: [], keys: Array.from({length: 50}, (_, i) => (
			{rule: 'r', limit: 'r', key: 'r:k=' + n + '-' + i, parts: [], count: 1, error: 0, first: at, last: at, retry_after: 0}))}, Date.now());
		look(0);
		const row = table.body.children[7];
		row.querySelector('a').focus();
		look(1);
		const all = table.body.children.length;
		for (let n = 2; n < 40; n++) look(n);
		const said = [all, table.body.children.length < 300, table.body.contains(row), row.contains(document.activeElement)].join();
		table.node.remove();
		return said;
	})`)
	if want := "100,true,true,true"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
