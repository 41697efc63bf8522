// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/storetest"
)

// byPlace gives each client one token for /x/y on example.com, and none of it
// comes back.
const byPlace = `{"rules": [{"name": "place", "limit_keys": ["ip:address", "method", "path", "host"],
	"match": {"path": "/x/y", "host": "example.com"},
	"algorithm": "token_bucket", "algorithm_config": {"rate": "1/1d", "burst": 1}}]}`

// The API and the middleware use the same bucket for every spelling of a value.
func TestAttributes_AreSpelledAsBehindTheMiddleware(t *testing.T) {
	next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	for _, tt := range []struct{ what, path, host, address string }{
		{"as it is", "/x/y", "example.com", "192.0.2.1"},
		{"empty segment", "//x//y", "example.com", "192.0.2.1"},
		{"dot segments", "/../x/./z/../y", "example.com", "192.0.2.1"},
		{"path parameters", "/x;a=1/y;b", "example.com", "192.0.2.1"},
		{"backslash", `/x\\y`, "example.com", "192.0.2.1"},
		{"host in capitals", "/x/y", "Example.COM", "192.0.2.1"},
		{"host with a port", "/x/y", "example.com:80", "192.0.2.1"},
		{"host with a dot", "/x/y", "example.com.:80", "192.0.2.1"},
		{"IPv4 in IPv6", "/x/y", "example.com", "::ffff:192.0.2.1"},
		{"IPv6 in full", "/x/y", "example.com", "2001:DB8:0:0:0:0:0:1"},
		{"IPv6 with a zone", "/x/y", "example.com", "fe80::1%eth0"},
	} {
		lim := limiter(t, storetest.NewModel(newClock().read), byPlace)
		mw, err := httplimit.New(lim, httplimit.Config{})
		if err != nil {
			t.Fatal(err)
		}
		api, err := httpapi.New(lim, httpapi.Config{Admin: true})
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest("GET", "/", nil)
		r.URL, r.Host, r.RemoteAddr = &url.URL{Path: tt.path}, tt.host, "["+tt.address+"]:4711"
		if addr := tt.address; addr == "192.0.2.1" {
			r.RemoteAddr = addr + ":4711"
		}
		pass := func() int {
			w := httptest.NewRecorder()
			mw.Wrap(next).ServeHTTP(w, r)
			return w.Code
		}
		body := `{"attributes":{"ip:address":"` + tt.address + `","method":"GET","path":"` + tt.path + `","host":"` + tt.host + `"}}`
		if got := pass(); got != 200 {
			t.Errorf("%s: first request through the middleware: got %d, want 200", tt.what, got)
		}
		for _, path := range []string{"/v1/peek", "/v1/take"} {
			if w := post(api, path, body); verdict(w) != denial {
				t.Errorf("%s: POST %s %s after it: got %d %s, want a denial by the same bucket", tt.what, path, body, w.Code, w.Body)
			}
		}
		for _, path := range []string{"/v1/refund", "/v1/reset"} {
			if w := post(api, path, body); w.Code != 200 {
				t.Errorf("%s: POST %s %s: got %d %s, want 200", tt.what, path, body, w.Code, w.Body)
			}
			if got := pass(); got != 200 {
				t.Errorf("%s: through the middleware after %s: got %d, want 200", tt.what, path, got)
			}
		}
	}
}

// The API keeps values that the middleware also keeps.
func TestAttributes_OthersUnchanged(t *testing.T) {
	for _, attr := range []string{"header:x", "query:x", "cookie:x", "jwt:x", "tenant"} {
		api, _ := newAPI(t, `{"rules": [{"name": "r", "limit_keys": ["`+attr+`"], "algorithm": "token_bucket",
			"algorithm_config": {"rps": 1, "burst": 1}}]}`, httpapi.Config{})
		for _, value := range []string{"a", "A", "//a", "a:80", "::ffff:192.0.2.1", "192.0.2.1"} {
			if w := post(api, "/v1/take", `{"attributes":{"`+attr+`":"`+value+`"}}`); w.Code != 200 {
				t.Errorf("%s %q: got %d %s, want a bucket of its own", attr, value, w.Code, w.Body)
			}
		}
	}
}

func TestAttributes_MethodIsInUpperCase(t *testing.T) {
	api, _ := newAPI(t, `{"rules": [{"name": "r", "limit_keys": ["method"], "match": {"method": "post"}, "algorithm": "token_bucket",
		"algorithm_config": {"rps": 1, "burst": 1}}]}`, httpapi.Config{})
	for method, want := range map[string]int{"PUT": 200, "PosT": denial, "post": denial, "POSTS": 200} {
		post(api, "/v1/take", `{"attributes":{"method":"POST"}}`)
		if w := post(api, "/v1/take", `{"attributes":{"method":"`+method+`"}}`); verdict(w) != want {
			t.Errorf("%s after POST: got %d %s, want %d", method, w.Code, w.Body, want)
		}
	}
}

// A path is read as it stands in a request line.
func TestAttributes_PathIsDecodedOnce(t *testing.T) {
	for path, want := range map[string]int{
		"/x/%79": denial, "/x%2Fy": denial, "/x/y?q": denial, "http://example.com/x/y": denial,
		"/x/%2579": 200, "/x/y%3Fq": 200, "/X/y": 200, "/x/y/": 200, // are others
		"/x/z/%2e%2e/y": 400, "/x/..;/y": 400, "/x/y#": 400, "/x/%zz": 400,
	} {
		api, _ := newAPI(t, byPlace, httpapi.Config{})
		body := func(path string) string {
			return `{"attributes":{"ip:address":"192.0.2.1","method":"GET","path":"` + path + `","host":"example.com"}}`
		}
		if w := post(api, "/v1/take", body("/x/y")); w.Code != 200 {
			t.Fatalf("/x/y: got %d %s, want 200", w.Code, w.Body)
		}
		if w := post(api, "/v1/take", body(path)); verdict(w) != want {
			t.Errorf("%s after /x/y: got %d %s, want %d", path, w.Code, w.Body, want)
		}
	}
}

// A token and a session are one value to the API as they are behind the middleware,
// in whatever spelling servers accept them.
func TestAttributes_CredentialsAreSpelledAsBehindTheMiddleware(t *testing.T) {
	const rules = `{"rules": [{"name": "one", "limit_keys": ["header:authorization", "cookie:sid"], "algorithm": "token_bucket",
		"algorithm_config": {"tokens_per_second": 0.001, "burst": 1}}]}`
	lim := limiter(t, storetest.NewModel(newClock().read), rules)
	mw, err := httplimit.New(lim, httplimit.Config{})
	if err != nil {
		t.Fatal(err)
	}
	api, err := httpapi.New(lim, httpapi.Config{})
	if err != nil {
		t.Fatal(err)
	}
	door := mw.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	want := 200
	for _, sent := range [][2]string{{"Bearer abc", "s%3Ax"}, {"bearer  abc", "s%3ax"}, {"BEARER abc", "%73:x"}} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header = http.Header{"Authorization": {sent[0]}, "Cookie": {"sid=" + sent[1]}}
		w := httptest.NewRecorder()
		if door.ServeHTTP(w, r); w.Code != want {
			t.Errorf("%q through the middleware: got %d, want %d", sent, w.Code, want)
		}
		want = 429
		body := `{"attributes":{"header:authorization":"` + sent[0] + `","cookie:sid":"` + sent[1] + `"}}`
		if w := post(api, "/v1/take", body); verdict(w) != denial {
			t.Errorf("%s: got %d, want a denial by the same bucket", body, w.Code)
		}
	}
}
