// SPDX-License-Identifier: Apache-2.0

package browser_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/metehq/mete/proof/browser"
)

func TestMain(m *testing.M) { browser.Main(m) }

// A trial is a test in a test, to see it fail.
type trial struct {
	testing.TB
	failures []string
	cleanups []func()
}

func (t *trial) Helper()                   {}
func (t *trial) Error(args ...any)         { t.failures = append(t.failures, fmt.Sprint(args...)) }
func (t *trial) Errorf(f string, a ...any) { t.failures = append(t.failures, fmt.Sprintf(f, a...)) }
func (t *trial) Cleanup(f func())          { t.cleanups = append(t.cleanups, f) }
func (t *trial) Failed() bool              { return false }

// failing returns how a test fails that opens a page with this content, under this
// policy.
func failing(t *testing.T, html, csp string, test func(*browser.Page)) []string {
	t.Helper()
	site := serve(t, html, csp)
	inner := &trial{TB: t}
	page := browser.Open(inner, browser.Desktop, browser.Light)
	page.Goto(site)
	if test != nil {
		test(page)
	}
	page.Poll("all has happened", "performance.getEntriesByName('slow').length === 0 && document.readyState === 'complete'")
	for _, f := range slices.Backward(inner.cleanups) {
		f()
	}
	return inner.failures
}

func serve(t *testing.T, html, csp string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			if csp != "" {
				w.Header().Set("Content-Security-Policy", csp)
			}
			fmt.Fprintf(w, `<!doctype html><html lang="en"><meta name="viewport" content="width=device-width"><title>t</title><body>%s</body></html>`, html)
		case "/broken":
			if hijacked, _, err := http.NewResponseController(w).Hijack(); err == nil {
				hijacked.Close()
			}
		case "/favicon.ico":
			w.WriteHeader(http.StatusNoContent)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL + "/"
}

// A part is a subtest on a site that others use, too.
type part struct {
	name string
	test func(*testing.T, *browser.Site)
}

// runInTurn runs parts one after the other.
func runInTurn(t *testing.T, site *browser.Site, parts ...part) {
	t.Helper()
	for _, p := range parts {
		t.Run(p.name, func(t *testing.T) { p.test(t, site.In(t)) })
	}
}

// side is how many parts of a test run at the same time.
const side = 2

// runTogether runs parts side by side. They are no parallel tests of package testing: those would
// wait until every other test has started its server.
func runTogether(t *testing.T, site *browser.Site, parts ...part) {
	t.Helper()
	var all sync.WaitGroup
	places := make(chan struct{}, side)
	for _, p := range parts {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			t.Run(p.name, func(t *testing.T) { p.test(t, site.In(t)) })
		})
	}
	all.Wait()
}

// The tools of this package find what they look for, before anything is proved by them.
func TestPage(t *testing.T) {
	t.Parallel()
	t.Run("complaints", pageErrors)
	t.Run("axe", pageAxe)
	t.Run("acts", pageInput)
	t.Run("sideways", pageSideways)
}

// Errors that no assertion sees fail the test.
func pageErrors(t *testing.T) {
	t.Parallel()
	const strict = "default-src 'self'; script-src 'self' 'nonce-n'; require-trusted-types-for 'script'"
	for _, c := range []struct{ name, html, csp, want string }{
		{"nothing", `<main><h1>Fine</h1></main>`, strict, ""},
		{"exception", `<script>null.x</script>`, "", "exception: Uncaught TypeError"},
		{"rejected promise", `<script>Promise.reject(new Error("lost"))</script>`, "", "lost"},
		{"console", `<script>console.error("bad", 7)</script>`, "", "console: bad 7"},
		{"console, other", `<script>console.log("fine")</script>`, "", ""},
		{"inline script", `<script>1</script>`, strict, "Executing inline script violates"},
		{"inline handler", `<img alt="" src="data:," onerror="alert(1)">`, "script-src 'none'", "Executing inline event handler violates"},
		{"inline style", `<p style="color:red">`, strict, "Applying inline style violates"},
		{"trusted types", `<script nonce="n">document.body.innerHTML = "x"</script>`, strict, "TrustedHTML"},
		{"missing image", `<img alt="" src="/none.png">`, "", "404"},
		{"broken image", `<img alt="" src="/broken">`, "", "request failed"},
		{"another's image", `<img alt="" src="http://example.com/x.png">`, "", "somebody else: http://example.com/x.png"},
		{"another port", `<script>fetch("http://127.0.0.1:1/").catch(() => {})</script>`, "", "somebody else: http://127.0.0.1:1/"},
		{"dialog", `<script>alert("hello")</script>`, "", `a dialog (alert) says "hello"`},
		{"window", `<script>open("/")</script>`, "", "a window was opened"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := failing(t, c.html, c.csp, nil)
			if c.want == "" && len(got) > 0 {
				t.Errorf("complaints %q, want none", got)
			}
			if c.want != "" && !strings.Contains(strings.Join(got, "\n"), c.want) {
				t.Errorf("complaints %q, want one with %q", got, c.want)
			}
		})
	}
	t.Run("tolerated", func(t *testing.T) {
		t.Parallel()
		got := failing(t, `<img alt="" src="/none.png"><script>alert("hello")</script>`, "", func(page *browser.Page) { page.Tolerate("404", "alert") })
		if len(got) != 1 || !strings.Contains(got[0], "alert") {
			t.Errorf("complaints %q, want only that of the dialog", got)
		}
	})
}

// axe works under a policy that allows no script but the page's, and finds faults.
func pageAxe(t *testing.T) {
	t.Parallel()
	const strict = "default-src 'none'; require-trusted-types-for 'script'"
	axe := func(page *browser.Page) { page.Axe() }
	if got := failing(t, `<main><h1>Fine</h1><p>All of it.</p></main>`, strict, axe); len(got) > 0 {
		t.Errorf("%q, want no fault", got)
	}
	got := strings.Join(failing(t, `<main><h1>Not</h1><button></button><font color="#eee">pale</font></main>`, strict, axe), "\n")
	for _, rule := range []string{"button-name", "color-contrast"} {
		if !strings.Contains(got, rule) {
			t.Errorf("%s, want the fault %s", got, rule)
		}
	}
}

const form = `<main><h1>Form</h1>
<label>Name <input id="name"></label> <label>Size <input type="range" max="10"></label>
<label>Kind <select><option>one<option value="2">two</select></label> <label>On <input type="date"></label>
<button>Go on</button> <button hidden>Go away</button> <button disabled>Go off</button>
<section><button>Go in</button></section><p id="said"></p></main>
<script>
addEventListener('change', e => { said.textContent += e.target.value + ';'; });
addEventListener('click', e => { if (e.target.tagName === 'BUTTON') said.textContent += e.target.innerText + ';'; });
addEventListener('keydown', e => { if (e.key === 'Escape' && !e.shiftKey || e.key === 'x') said.textContent += e.key + ';'; });
</script>`

// User input reaches the page.
func pageInput(t *testing.T) {
	t.Parallel()
	browser.Each(t, func(t *testing.T, size browser.Size, theme browser.Theme) {
		page := browser.Open(t, size, theme)
		page.Goto(serve(t, form, ""))
		page.Wait("heading", "Form")
		page.Fill("Name", "Größe")
		page.Fill("Size", "7")
		page.Fill("Kind", "two")
		page.Fill("On", "2030-01-02")
		page.Click("button", "Go on")
		page.In("section").Click("button", "Go *")
		page.Press("Escape")
		page.Press("x")
		page.WaitText("#said", "7;2;2030-01-02;Go on;Go in;Escape;x;")
		if got := page.Value("Name"); got != "Größe" {
			t.Errorf("Name is %q, want Größe", got)
		}
		if got := page.Count("button", "Go *"); got != 3 {
			t.Errorf("%d buttons, want 3: those that are not hidden", got)
		}
		browser.Eval[any](page, "document.activeElement.blur()")
		page.ClickAt("h1")
		if got := page.TabTo("button", "Go in"); len(got) == 0 || !strings.Contains(got[len(got)-1], "Go on") {
			t.Errorf("Tab passes %q, want Go on last", got)
		}
		if got, want := browser.Eval[bool](page, "matchMedia('(prefers-color-scheme: dark)').matches"), theme == browser.Dark; got != want {
			t.Errorf("dark: %v, want %v", got, want)
		}
		page.CheckNoOverflow()
		page.Screenshot("form")
	})
}

// A page that is wider than a phone is noticed.
func pageSideways(t *testing.T) {
	t.Parallel()
	inner := &trial{TB: t}
	page := browser.Open(inner, browser.Phone, browser.Light)
	t.Cleanup(func() {
		for _, f := range slices.Backward(inner.cleanups) {
			f()
		}
	})
	page.Goto(serve(t, `<table id="wide" width="700"><tr><td>wide</table>`, ""))
	page.CheckNoOverflow()
	if got := strings.Join(inner.failures, "\n"); !strings.Contains(got, "<td>wide</td>") {
		t.Errorf("%s, want that its cell is too wide", got)
	}
}
