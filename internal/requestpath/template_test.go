// SPDX-License-Identifier: Apache-2.0

package requestpath_test

import (
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/metehq/mete/internal/requestpath"
	"github.com/metehq/mete/internal/testseed"
)

func TestTemplate(t *testing.T) {
	for _, tt := range []struct{ template, path, want string }{ // want is the capture of x, or "-" if there is no match
		{"/users/{x}", "/users/7", "7"}, {"/users/{x}", "/users/", "-"}, {"/users/{x}", "/users", "-"}, {"/users/{x}", "/users/7/", "-"},
		{"/users/{x}", "/users/7/8", "-"}, {"/users/{x}", "/Users/7", "-"}, {"/users/{x}/{$}", "/users/7/", "7"}, {"/users/{x}/{$}", "/users/7", "-"},
		{"/users/{x}/orders", "/users/7/orders", "7"}, {"/users/{x}/orders", "/users//orders", "-"}, {"/users/{x}/orders", "/users/7/orders/1", "-"},
		{"/{x}", "/", "-"}, {"/{x}", "/a", "a"}, {"/{$}", "/", ""}, {"/{x...}", "/", ""}, {"/{x...}", "/a/b/", "a/b/"}, {"/{x...}", "*", "-"}, {"/{x...}", "", "-"},
		{"/files/{x...}", "/files/", ""}, {"/files/{x...}", "/files", "-"}, {"/files/{x...}", "/files/a", "a"}, {"/{y}/{x}", "/a/b", "b"},
		{"/a%20b/{x}", "/a b/c", "c"}, {"/%7Bx%7D/{x}", "/{x}/c", "c"},
	} {
		p, m := requestpath.ParseTemplate(tt.template)
		if p == nil {
			t.Errorf("%s: %+v", tt.template, m)
			continue
		}
		got := "-"
		if p.Match(tt.path) {
			got, _ = p.Capture(tt.path, "x")
		}
		if got != tt.want {
			t.Errorf("%s captures %q from %q, want %q", tt.template, got, tt.path, tt.want)
		}
	}
}

func TestTemplate_Mistakes(t *testing.T) {
	for written, hint := range map[string]string{
		"/a/{x": "write a wildcard as {id}; or %7B and %7D for braces of the path", "/a/x}": "write a wildcard as {id}; or %7B and %7D for braces of the path",
		"/a{x}": `as in "/users/{id}"`, "/{x}b": `as in "/users/{id}"`, "/{x}{y}": `as in "/users/{id}"`, "/}{": `as in "/users/{id}"`, "/{{x}}": `as in "/users/{id}"`,
		"/{}": "as in {id} or {rest...}", "/{...}": "as in {id} or {rest...}", "/{x}/{x}": "give each wildcard its own name", "/{x}/a/{x...}": "give each wildcard its own name",
		"/{x...}/a": "write {x} for one segment", "/{$}/a": "remove it", "/{x-y}": "as in {order_id}", "/{1}": "as in {order_id}", "/{é}": "as in {order_id}",
		"/{x}/": `write "/{x}/{$}" for the path with the slash, or "/{x}/{rest...}" for all paths below`, "/{x}/*": `write "/{x}/{rest...}" for all paths below`,
		"/{x}*": `write "/{x}/{rest...}" for all paths below`, "{x}": `write "/{x}"`, "/{x}?a=b": `write "/{x}", and match query:NAME; or %3F for the character`,
		"/{x}#b": `write "/{x}"; or %23 for the character`, "/{x}/:id": "write {id}", "/{x}/<int:no>": "write {no}", "/{x}/%": "write %25 for the character",
		"/a%2Fb/{x}": "write a segment for each part", `/a\b/{x}`: "write a segment for each part", "/a//{x}": "write the template without them",
		"/../{x}": "write the template without them", "/a;b/{x}": "write the template without them", "/%00/{x}": "leave it out",
	} {
		if p, m := requestpath.ParseTemplate(written); p != nil || m.Hint != hint || m.Reason == "" {
			t.Errorf("%s: template %v, mistake %+v; want the hint %q", written, p, m, hint)
		}
	}
}

func TestTemplate_Contradicts(t *testing.T) {
	for _, tt := range []struct{ a, b, want string }{
		{"/a/{x}", "/{x}/b", "x"}, {"/a/{x}", "/{y}/b", ""}, {"/a/{x}", "/b/{y}/{x}", ""}, {"/a/{x}", "/a/{x}/c", ""}, {"/a/{x}", "/a/{x...}", ""},
		{"/a/{x}/c", "/a/{x...}", "x"}, {"/{x}/{y}", "/{y}/{x}", "x"}, {"/a/{x}", "/{y}/{x}", ""}, {"/{x...}", "/a/{x}", "x"}, {"/a/{x}", "/a/{$}", ""}, {"/a/{x}", "/a/{x}", ""},
	} {
		a, _ := requestpath.ParseTemplate(tt.a)
		b, _ := requestpath.ParseTemplate(tt.b)
		if got, back := a.Contradicts(b), b.Contradicts(a); got != tt.want || (back == "") != (got == "") {
			t.Errorf("%s and %s contradict in %q and %q, want %q", tt.a, tt.b, got, back, tt.want)
		}
	}
}

// FuzzTemplate compares templates with http.ServeMux: the same patterns, matches and captures.
func FuzzTemplate(f *testing.F) {
	rnd := rand.New(testseed.PCG(1, 4))
	parts := []string{"/", "/", "a", "b", "{x}", "{y}", "{x...}", "{$}", ".", "%20", "{", "}", "users"}
	random := func() (s string) {
		for range rnd.IntN(9) {
			s += parts[rnd.IntN(len(parts))]
		}
		return s
	}
	for range 3000 {
		f.Add(random(), random())
	}
	for _, seed := range [][2]string{{"/a/{x}/b", "/a/c/b"}, {"/a/{x...}", "/a/b/c"}, {"/{x}/{$}", "/a/"}, {"/{x}/{y}", "/a/b"}, {"/a%20b/{x}", "/a b/c"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, written, path string) {
		p, m := requestpath.ParseTemplate(written)
		if (p == nil) == (m == requestpath.Mistake{}) {
			t.Fatalf("%q: template %v, mistake %+v", written, p, m)
		}
		if p == nil {
			return
		}
		clean, disputed := requestpath.ParseDecoded(path)
		if disputed || clean == "*" || strings.Contains(written, "%") && !strings.Contains(written, "%20") {
			return
		}
		mux, captures := http.NewServeMux(), map[string]string{}
		matched := false
		if !isMuxPattern(mux, written, func(r *http.Request) {
			matched = true
			for _, name := range []string{"x", "y"} {
				captures[name] = r.PathValue(name)
			}
		}) {
			return // ServeMux is stricter: names that are no Go identifiers
		}
		r := httptest.NewRequest("GET", "/", nil)
		r.URL = &url.URL{Path: clean}
		mux.ServeHTTP(httptest.NewRecorder(), r)
		if got := p.Match(clean); got != matched {
			t.Fatalf("%q matches %q: %t, ServeMux: %t", written, clean, got, matched)
		}
		for name, want := range captures {
			if !p.HasWildcard(name) {
				continue
			}
			if got, ok := p.Capture(clean, name); !ok || got != want {
				t.Fatalf("%q captures %q as %s from %q, ServeMux %q", written, got, name, clean, want)
			}
		}
	})
}

// isMuxPattern registers a pattern, and reports whether ServeMux accepts it.
func isMuxPattern(mux *http.ServeMux, pattern string, handle func(*http.Request)) (ok bool) {
	defer func() { ok = recover() == nil }()
	mux.HandleFunc(pattern, func(_ http.ResponseWriter, r *http.Request) { handle(r) })
	return true
}
