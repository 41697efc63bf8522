// SPDX-License-Identifier: Apache-2.0

package httpfacts_test

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/metehq/mete/internal/httpfacts"
	"github.com/metehq/mete/internal/requestpath"
	"github.com/metehq/mete/policy"
)

func attribute(t testing.TB, name string) policy.Attribute {
	t.Helper()
	a, err := policy.ParseAttribute(name)
	if err != nil {
		t.Fatalf("ParseAttribute(%q): %v", name, err)
	}
	return a
}

func newSource(t testing.TB, config httpfacts.Config) *httpfacts.Source {
	t.Helper()
	source, err := httpfacts.New(config)
	if err != nil {
		t.Fatalf("New(%+v): %v", config, err)
	}
	return source
}

// lookup looks name up in r, twice: the second answer must not differ.
func lookup(t testing.TB, source *httpfacts.Source, r *http.Request, name string) (string, bool) {
	t.Helper()
	facts := source.Facts(r)
	defer facts.Release()
	a := attribute(t, name)
	value, ok := facts.Lookup(a)
	if again, okAgain := facts.Lookup(a); again != value || okAgain != ok {
		t.Errorf("Lookup(%s) = %q, %v at first, then %q, %v", name, value, ok, again, okAgain)
	}
	return value, ok
}

const missing = "(missing)"

func TestLookup(t *testing.T) {
	r := httptest.NewRequest("PUT", "/a//b/../c/?tenant=t1&tenant=t2&empty=&bare&sp%61ce=x+%26&bad=%zz&bad=2&semi;x=1&=noname", nil)
	r.Host = "API.Example.COM.:8080"
	r.RemoteAddr = "192.0.2.1:99"
	r.Header = http.Header{
		"X-Api-Key":         {"k1", "k2"},
		"Empty":             {""},
		"None":              {},
		"X-Api-Key-Rotated": {"r"},
		"Cookie":            {`a=1; session=s1; session=s2; quoted="q q"; =x; flag`, "later=l; session=s3"},
		"X-" + http.CanonicalHeaderKey(strings.Repeat("n", 80)): {"long"},
	}
	for _, tt := range []struct{ name, want string }{
		{"header:x-api-key", "k1"},
		{"header:X-API-KEY", "k1"},
		{"header:x-api-key-rotated", "r"},
		{"header:empty", ""},
		{"header:none", missing},
		{"header:absent", missing},
		{"header:host", "API.Example.COM.:8080"},
		{"header:x-" + strings.Repeat("n", 80), "long"},
		{"query:tenant", "t1"},
		{"query:empty", ""},
		{"query:bare", ""},
		{"query:space", "x &"},
		{"query:sp%61ce", missing},
		{"query:bad", "2"},
		{"query:x", missing},
		{"query:absent", missing},
		{"cookie:session", "s1"},
		{"cookie:a", "1"},
		{"cookie:quoted", "q q"},
		{"cookie:later", "l"},
		{"cookie:flag", missing},
		{"cookie:absent", missing},
		{"method", "PUT"},
		{"path", "/a/c/"},
		{"host", "api.example.com"},
		{"ip:address", "192.0.2.1"},
		{"ip:address/56", "192.0.2.1"},
		{"jwt:sub", missing},
		{"tenant", missing},
	} {
		got, ok := lookup(t, newSource(t, httpfacts.Config{}), r, tt.name)
		if !ok {
			got += missing
		}
		if got != tt.want {
			t.Errorf("Lookup(%s) = %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestLookup_Path(t *testing.T) {
	for _, tt := range []struct{ target, want string }{
		{"/", "/"},
		{"/a", "/a"},
		{"/a/", "/a/"},
		{"//a", "/a"},
		{"/a//", "/a/"},
		{"/a/./b", "/a/b"},
		{"/a/../b", "/b"},
		{"/../../b", "/b"},
		{"/a/.", "/a/"},
		{"/a/b/..", "/a/"},
		{"/..", "/"},
		{"/.a/..b/...", "/.a/..b/..."},
		{"/%61", "/a"},
		{"/a/%2e%2e/b", "/b"},
		{"/a%2Fb", "/a/b"},
		{"/%252e%252e/b", "/%2e%2e/b"}, // decoded once only
		{"/A;v=1", "/A"},
		{"/a%3Fb=1?c", "/a?b=1"},
		{"/a%23b", "/a#b"},
		{"/a?b=/../c", "/a"},
		{"http://example.com", "/"},
		{"http://example.com/x/", "/x/"},
	} {
		r := httptest.NewRequest("GET", tt.target, nil)
		if got, _ := lookup(t, newSource(t, httpfacts.Config{}), r, "path"); got != tt.want {
			t.Errorf("path of %q: got %q, want %q", tt.target, got, tt.want)
		}
	}
	for given, want := range map[string]string{"": "/", "*": "*", "a/b": "/a/b"} {
		r := httptest.NewRequest("OPTIONS", "/", nil)
		r.URL.Path = given
		if got, _ := lookup(t, newSource(t, httpfacts.Config{}), r, "path"); got != want {
			t.Errorf("path of URL.Path %q: got %q, want %q", given, got, want)
		}
	}
}

func TestFacts_Disputed(t *testing.T) {
	source := newSource(t, httpfacts.Config{})
	for _, tt := range []struct {
		method, target string
		want           bool
	}{
		{"GET", "/a/../b;x", true},
		{"GET", "/a/%2e%2e/b", true},
		{"GET", "/a/..%2fb", true},
		{"GET", "/a%2fb/../c", true},
		{"GET", "/a/..;/b", true},
		{"GET", "/a#/b", true},
		{"GET", "/a\xff", true},
		{"GET", "/a%00", true},
		{"GET", "/a/../b", false},
		{"GET", "/a%2fb", false},
		{"GET", "/a;x/b%ff", false},
		{"CONNECT", "/a/../b", true},
		{"CONNECT", "//a", true},
		{"CONNECT", "/a", false},
		{"CONNECT", "a:443", false},
		{"OPTIONS", "*", false},
		{"GET", "*", true},
		{"GET", "http://a/b", false},
	} {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(tt.method + " " + tt.target + " HTTP/1.1\r\nHost: a\r\n\r\n")))
		if err != nil {
			t.Fatalf("%s %q: %v", tt.method, tt.target, err)
		}
		for _, a := range []string{"host", "path"} {
			facts := source.Facts(r)
			facts.Lookup(attribute(t, a))
			if got := facts.Ambiguity() != ""; got != (tt.want && a == "path") {
				t.Errorf("%s %q, asked for its %s: disputed %v", tt.method, tt.target, a, got)
			}
			facts.Release()
		}
	}
}

// A target without a path may have one for other servers.
func TestFacts_DisputedTarget(t *testing.T) {
	source := newSource(t, httpfacts.Config{})
	for _, target := range []string{"http:http://b/c", "x:http://b/c", "http:c", "x:*"} {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET " + target + " HTTP/1.1\r\nHost: a\r\n\r\n")))
		if err != nil {
			t.Fatalf("%q: %v", target, err)
		}
		for a, want := range map[string]bool{"path": true, "host": true, "method": false} {
			facts := source.Facts(r)
			facts.Lookup(attribute(t, a))
			if got := facts.Ambiguity() != ""; got != want {
				t.Errorf("%q, asked for its %s: disputed %v, want %v", target, a, got, want)
			}
			facts.Release()
		}
	}
}

func TestFacts_DisputedQuery(t *testing.T) {
	source := newSource(t, httpfacts.Config{})
	for target, want := range map[string]bool{"/?key=a": false, "/?key=a%23b": false, "/?key=a#b": true, "/?x=1&key=a#": true} {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET " + target + " HTTP/1.1\r\nHost: a\r\n\r\n")))
		if err != nil {
			t.Fatalf("%q: %v", target, err)
		}
		for _, a := range []string{"query:key", "path"} {
			facts := source.Facts(r)
			facts.Lookup(attribute(t, a))
			if got := facts.Ambiguity() != ""; got != (want && a != "path") {
				t.Errorf("%q, asked for its %s: disputed %v", target, a, got)
			}
			facts.Release()
		}
	}
}

func TestFacts_DisputedHost(t *testing.T) {
	source := newSource(t, httpfacts.Config{})
	for host, want := range map[string]bool{
		"a.example": false, "A.example.:80": false, "[::1]:80": false, "": false,
		"a.example..": true, ".a.example": true, "[a.example]": true, "a.example/": true, "u@a.example": true,
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Host = host
		for _, a := range []string{"host", "path"} {
			facts := source.Facts(r)
			facts.Lookup(attribute(t, a))
			if got := facts.Ambiguity() != ""; got != (want && a == "host") {
				t.Errorf("host %q, asked for its %s: disputed %v", host, a, got)
			}
			facts.Release()
		}
	}
}

// Handlers in front may have changed the path, and not how it was sent.
func TestLookup_ChangedPath(t *testing.T) {
	r := httptest.NewRequest("GET", "/old%2Fa/x;y", nil)
	r.URL.Path = "/new/x"
	if got, _ := lookup(t, newSource(t, httpfacts.Config{}), r, "path"); got != "/new/x" {
		t.Errorf("path: got %q, want /new/x", got)
	}
}

func TestLookup_Host(t *testing.T) {
	for given, want := range map[string]string{
		"example.com": "example.com", "EXAMPLE.com": "example.com", "example.com.": "example.com", "example.com:80": "example.com",
		"example.com.:80": "example.com", "192.0.2.1:80": "192.0.2.1", "[2001:DB8::1]:80": "2001:db8::1", "[::1]": "::1",
		"": missing, ":80": missing, ".": missing, "[": missing,
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Host = given
		got, ok := lookup(t, newSource(t, httpfacts.Config{}), r, "host")
		if !ok {
			got += missing
		}
		if got != want {
			t.Errorf("host of %q: got %q, want %q", given, got, want)
		}
	}
}

func TestLookup_Extra(t *testing.T) {
	extra := func(r *http.Request, a policy.Attribute) (string, bool) {
		return a.String() + " of " + r.Method, a.String() != "nothing"
	}
	source := newSource(t, httpfacts.Config{Extra: extra})
	r := httptest.NewRequest("GET", "/", nil)
	for name, want := range map[string]string{"jwt:sub": "jwt:sub of GET", "plan": "plan of GET", "nothing": "nothing of GET"} {
		got, ok := lookup(t, source, r, name)
		if got != want || ok != (name != "nothing") {
			t.Errorf("Lookup(%s) = %q, %v, want %q", name, got, ok, want)
		}
	}
	// The program cannot supply headers.
	if got, ok := lookup(t, source, r, "header:x-api-key"); ok {
		t.Errorf("Lookup(header:x-api-key) = %q of a request without headers", got)
	}
}

// A source's facts are used again: nothing of one request may reach another.
func TestFacts_OneRequest(t *testing.T) {
	source := newSource(t, httpfacts.Config{UnverifiedClaims: true})
	first := httptest.NewRequest("GET", "/?tenant=one", nil)
	first.Header.Set("Cookie", "session=one")
	first.Header.Set("Authorization", "Bearer "+token(`{"sub":"one"}`))
	second := &http.Request{URL: first.URL.JoinPath("x"), RemoteAddr: "@"}
	second.URL.RawQuery = ""
	for range 10 {
		for _, name := range []string{"query:tenant", "cookie:session", "jwt:sub", "ip:address"} {
			if got, ok := lookup(t, source, first, name); !ok {
				t.Fatalf("Lookup(%s) = %q, %v in the first request", name, got, ok)
			}
			if got, ok := lookup(t, source, second, name); ok {
				t.Fatalf("Lookup(%s) = %q in a request that has none", name, got)
			}
		}
	}
}

func TestLookup_ManyNames(t *testing.T) {
	source := newSource(t, httpfacts.Config{})
	facts := source.Facts(httptest.NewRequest("GET", "/?p99=x", nil))
	defer facts.Release()
	for range 2 {
		for i := range 100 {
			name := "query:p" + strings.Repeat("9", i)
			if _, ok := facts.Lookup(attribute(t, name)); ok != (i == 2) {
				t.Errorf("Lookup(%s): got %v", name, ok)
			}
		}
	}
}

// Queries are read as the standard library reads them.
func FuzzLookup_Query(f *testing.F) {
	for _, seed := range []string{"a=1&a=2", "%61=1", "a+b=1&a=", "a=%zz&a=3", "a;b=1&a=4", "=1&&a", "%=1&a=%4", "a%=1"} {
		f.Add(seed, "a")
	}
	f.Fuzz(func(t *testing.T, raw, name string) {
		a, err := policy.ParseAttribute("query:" + name)
		if err != nil || strings.Count(raw, "&") > 1000 { // of more, the standard library reads none
			return
		}
		values, _ := url.ParseQuery(raw)
		r := &http.Request{URL: &url.URL{RawQuery: raw}}
		facts := newSource(t, httpfacts.Config{}).Facts(r)
		got, ok := facts.Lookup(a)
		if ok != values.Has(a.Name) || got != values.Get(a.Name) {
			t.Errorf("%s of %q: got %q, %v, want %q", a, raw, got, ok, values[a.Name])
		}
	})
}

// One mebibyte of any input is read in time and without a panic. It contains no parameter, cookie, claim or
// address, and headers and paths are not truncated.
func TestLookup_Hostile(t *testing.T) {
	const size = 1 << 20
	for _, unit := range []string{"a", ",", ";", "=", "&", "a&", "%", "%2", "+", `"`, `\`, `"\`, "[", ".", "/", "/..", "/.", "\x00", "\xff", "\n", "a=b;", "for=", "1.1.1.1,", "Bearer "} {
		junk := strings.Repeat(unit, size/len(unit))
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr, r.Host, r.URL.Path, r.URL.RawQuery = "10.0.0.1:80", junk, junk, junk
		r.Header = http.Header{"X-Forwarded-For": {junk, junk}, "Forwarded": {junk}, "Cookie": {junk}, "Authorization": {"Bearer " + junk}, "X-Api-Key": {junk}}
		for header, names := range map[string][]string{
			"":          {"header:x-api-key", "query:tenant", "cookie:session", "jwt:sub", "ip:address", "path", "host"},
			"Forwarded": {"ip:address"},
			"X-Api-Key": {"ip:address"},
		} {
			source := newSource(t, httpfacts.Config{Trust: httpfacts.Trust{Proxies: proxies, Header: header}, UnverifiedClaims: true})
			for _, name := range names {
				got, ok := lookup(t, source, r, name)
				if !ok {
					got += missing
				}
				if want := ofJunk(name, junk); got != want {
					t.Errorf("Lookup(%s) of %.20q…, trusting %q: got %.40q (%d bytes), want %.40q (%d bytes)",
						name, junk, header, got, len(got), want, len(want))
				}
			}
		}
	}
}

// ofJunk returns the value of name if the client sends only junk.
func ofJunk(name, junk string) string {
	switch name {
	case "header:x-api-key":
		return junk
	case "ip:address":
		return "10.0.0.1" // of the last hop that is known
	case "path":
		clean, _ := requestpath.ParseDecoded(junk)
		return clean
	case "host":
		if host, ok := requestpath.Host(junk); ok {
			return host
		}
	}
	return missing
}

func TestQueryValue(t *testing.T) {
	for _, tt := range []struct{ raw, want string }{
		{"", missing}, {"a=1", "1"}, {"b=2&a=1&a=3", "1"}, {"a", ""}, {"%61=x+y", "x y"}, {"a=%zz&a=2", "2"}, {"a=1;b=2", missing}, {"&&", missing},
	} {
		got, ok := httpfacts.QueryValue(tt.raw, "a")
		if !ok {
			got += missing
		}
		if got != tt.want {
			t.Errorf("QueryValue(%q, a) = %q, want %q", tt.raw, got, tt.want)
		}
	}
	if got, ok := httpfacts.QueryValue("&a=1&", ""); ok {
		t.Errorf("QueryValue of no name = %q of a query that has none without a name", got)
	}
}

func TestCookieValue(t *testing.T) {
	for _, tt := range []struct{ line, want string }{
		{"", missing}, {"a=1", "1"}, {"b=2;\ta=1; a=3", "1"}, {"a", missing}, {"a=", ""}, {`a="q"`, "q"}, {`a="`, `"`}, {";;=", missing},
	} {
		got, ok := httpfacts.CookieValue(tt.line, "a")
		if !ok {
			got += missing
		}
		if got != tt.want {
			t.Errorf("CookieValue(%q, a) = %q, want %q", tt.line, got, tt.want)
		}
	}
}
