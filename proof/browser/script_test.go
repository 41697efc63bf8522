// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"testing"

	"github.com/metehq/mete/proof/browser"
)

// TestScripts tests the functions of the page's scripts that need a document. The node tests in
// dashboard/testjs cover the others.
func TestScripts(t *testing.T) {
	t.Parallel()
	site := browser.Serve(t, policy)
	page := browser.Open(t, browser.Desktop, browser.Light)
	page.Remember(browser.OperateToken)
	await(page, site.Page("explain"), "Explain")
	for _, part := range []struct {
		name string
		test func(*testing.T, *browser.Page)
	}{{"keyed", scriptKeyed}, {"released", scriptReleased}, {"held", scriptHeld}, {"clocks", scriptClocks}} {
		t.Run(part.name, func(t *testing.T) { part.test(t, page) })
	}
}

// A list that changes keeps the nodes of the remaining entries, with focus and selection. If the focused
// entry disappears, a neighbor gets the focus.
func scriptKeyed(t *testing.T, page *browser.Page) {
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

// Updates wait until the user releases the pressed control. If the release event is missing, the next
// pointer movement counts as the release.
func scriptReleased(t *testing.T, page *browser.Page) {
	for _, tt := range []struct{ name, run, want string }{
		{"nothing", "", "free"},
		{"pressed", "pointer('down')", "held"},
		{"let go", "pointer('down'); pointer('up')", "free"},
		{"scrolled by a finger", "pointer('down'); pointer('cancel')", "free"},
		{"dragged", "pointer('down'); pointer('move', {buttons: 1})", "held"},
		{"let go where the page is not told", "pointer('down'); pointer('move', {buttons: 0})", "free"},
		{"moved after it was let go", "pointer('down'); pointer('up'); meanwhile = () => pointer('move', {buttons: 0})", "free"},
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
		got := browser.Eval[string](page, `import('./shell/press.js').then(({released}) => {
			// Time goes by when this says so: the page waits for nothing else meanwhile.
			const real = [setTimeout, clearTimeout];
			let [clock, timers] = [0, new Map()];
			window.setTimeout = (run, wait) => { timers.set(timers.size + 1, {at: clock + wait, run}); return timers.size; };
			window.clearTimeout = id => { if (timers.has(id)) timers.get(id).run = () => {}; };
			const goOn = wait => {
				clock += wait;
				for (const timer of timers.values()) {
					if (timer.at <= clock) { const {run} = timer; timer.run = () => {}; run(); }
				}
			};
			const main = document.querySelector('#main');
			const slider = document.createElement('input');
			slider.type = 'range';
			main.append(slider);
			const pointer = (what, how = {}, node = main) => node.dispatchEvent(new PointerEvent('pointer' + what, {pointerId: 1, isPrimary: true, bubbles: true, ...how}));
			const key = (what, name, repeat = false) => main.dispatchEvent(new KeyboardEvent('key' + what, {key: name, repeat, bubbles: true}));
			let meanwhile = () => {};
			`+tt.run+`;
			for (let i = 0; i < 100; i++) { goOn(20); meanwhile(); }
			const said = released() ? 'held' : 'free';
			slider.remove();
			goOn(10000);
			const end = released() ? ', and for ever' : '';
			[window.setTimeout, window.clearTimeout] = real;
			return said + end;
		})`)
		if got != tt.want {
			t.Errorf("%s: %s, want it %s", tt.name, got, tt.want)
		}
	}
}

// A table of keys that is pointed at for long keeps the row, and not all that were there.
func scriptHeld(t *testing.T, page *browser.Page) {
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

// An override ends by the server's clock, and a bucket is drawn by it, even where the
// browser's clock is wrong.
func scriptClocks(t *testing.T, page *browser.Page) {
	off := browser.Eval[float64](page, `(() => {
		const now = Date.now;
		Date.now = () => now() + 7200e3;
		return import('./shell/api.js').then(({get, serverNow}) => get('v1/me').then(() => serverNow() - now())).finally(() => { Date.now = now; });
	})()`)
	if off < -3000 || off > 3000 {
		t.Errorf("with a clock that is two hours fast the server's time is off by %v ms", off)
	}
	off = browser.Eval[float64](page, `import('./key/feed.js').then(({followBucket}) => new Promise(done => {
		const real = window.fetch;
		window.fetch = async () => new Response(new ReadableStream()); // it answers, and says nothing yet
		const feed = followBucket('search:x-user=alice', Date.now() / 1000 - 7200, {onState() {
			window.fetch = real;
			setTimeout(() => {
				done(feed.now() - Date.now() / 1000 + 7200);
				feed.close();
			});
		}});
	}))`)
	if off < -5 || off > 5 {
		t.Errorf("with a clock that is two hours fast a bucket that was seen is drawn %v s later", off)
	}
}
