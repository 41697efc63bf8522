// SPDX-License-Identifier: Apache-2.0

package httpfacts_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"testing"

	"github.com/metehq/mete/internal/httpfacts"
)

// The path, the connection and the address are read once. Later readers have the same values.
func TestFacts_ReadOnce(t *testing.T) {
	source := newSource(t, httpfacts.Config{Trust: httpfacts.Trust{Proxies: proxies}})
	r := typical()
	facts := source.Facts(r)
	defer facts.Release()
	facts.Place()
	facts.Address()
	r.URL.Path, r.RemoteAddr = "/other", "192.0.2.7:80"
	r.Header.Set("X-Forwarded-For", "192.0.2.8")
	path, _ := facts.Place()
	address, _ := facts.Address()
	if path != "/v1/items/42" || address != "203.0.113.9" || !facts.Trusted() {
		t.Errorf("got path %q, address %q and trusted %v, want those of the first reading", path, address, facts.Trusted())
	}
}

// A proxy sends on a path that servers resolve as the rules do. Rules see the same path.
func TestFacts_Resolve(t *testing.T) {
	for _, tt := range []struct {
		target   string
		path     string // that rules see
		sent     string // URL.Path
		raw      string // URL.RawPath
		disputed bool
	}{
		{"/v1/items", "/v1/items", "/v1/items", "", false},
		{"/a%2Fb", "/a/b", "/a/b", "/a%2Fb", false},
		{"/a;x/b", "/a/b", "/a;x/b", "", false},
		{"/a/%2e%2e/b;x", "/b", "/b;x", "", false},
		{"/a//b", "/a/b", "/a/b", "", false},
		{"/a/..;/b", "/b", "/b", "", false},
		{"/a%00b", "/a\x00b", "/a\x00b", "", true},
		{"/a/../%00", "/\x00", "/\x00", "", true},
		{"/\xff", "/\xff", "/\xff", "/\xff", true},
	} {
		r := httptest.NewRequest("GET", "http://example.com"+tt.target, nil)
		before := *r.URL
		facts := newSource(t, httpfacts.Config{}).Facts(r)
		facts.Resolve()
		path, disputed := facts.Place()
		sent := facts.Request()
		if path != tt.path || disputed != tt.disputed || sent.URL.Path != tt.sent || sent.URL.RawPath != tt.raw {
			t.Errorf("%s: got path %q (disputed: %v), sent as %q (%q); want %q (%v), %q (%q)",
				tt.target, path, disputed, sent.URL.Path, sent.URL.RawPath, tt.path, tt.disputed, tt.sent, tt.raw)
		}
		if *r.URL != before {
			t.Errorf("%s: the URL of the original request is %v now, want %v", tt.target, r.URL, before)
		}
		facts.Release()
	}
}

// Removed fields are gone for the rules and for the server, and stay in the original request.
func TestFacts_RemoveField(t *testing.T) {
	r := typical()
	r.URL.Path = "//x"
	before := r.Header.Clone()
	facts := newSource(t, httpfacts.Config{}).Facts(r)
	defer facts.Release()
	if facts.Request() != r {
		t.Error("a request with nothing to change is copied")
	}
	facts.Resolve()
	copied := facts.Request()
	facts.RemoveField("X-Api-Key")
	header := reflect.ValueOf(copied.Header).Pointer()
	facts.RemoveField("Absent")
	if reflect.ValueOf(copied.Header).Pointer() != header {
		t.Error("the header is copied twice")
	}
	if facts.Request() != copied || copied.URL.Path != "/x" {
		t.Errorf("the request is copied twice, or has the path %q", copied.URL.Path)
	}
	if value, ok := facts.Lookup(attribute(t, "header:x-api-key")); ok {
		t.Errorf("rules read %q of a removed field", value)
	}
	if value, ok := facts.Lookup(attribute(t, "cookie:session")); !ok || value != "abc" {
		t.Errorf("rules read the cookie %q, %v, want abc", value, ok)
	}
	if !reflect.DeepEqual(r.Header, before) || r.URL.Path != "//x" {
		t.Errorf("the original request has %v and %v now", r.Header, r.URL)
	}
}

// Facts that were used before have nothing left of their request, and change no other one.
func TestFacts_Reuse(t *testing.T) {
	source := newSource(t, httpfacts.Config{Trust: httpfacts.Trust{Proxies: proxies}})
	for range 100 { // most of them are the same object
		first := typical()
		first.URL.Path = "/a//b"
		facts := source.Facts(first)
		facts.DisputeLookAlikes()
		facts.Resolve()
		facts.RemoveField("X-Api-Key")
		facts.Address()
		facts.Release()

		second := &http.Request{Method: "GET", URL: &url.URL{Path: "/c//d"}, RemoteAddr: "192.0.2.9:80", Header: http.Header{"X_secret": {"1"}, "X-Own": {"2"}}}
		facts = source.Facts(second)
		facts.Lookup(attribute(t, "header:x-secret"))
		address, _ := facts.Address()
		if facts.Request() != second || facts.Ambiguity() != "" || facts.Trusted() || address != "192.0.2.9" {
			t.Fatalf("got request %v, dispute %q, trusted %v, address %q, want those of the second request", facts.Request(), facts.Ambiguity(), facts.Trusted(), address)
		}
		facts.Resolve()
		facts.RemoveField("X-Own")
		if path, _ := facts.Place(); path != "/c/d" || second.URL.Path != "/c//d" || len(second.Header) != 2 {
			t.Fatalf("got path %q, and the second request has %v and %v now", path, second.URL, second.Header)
		}
		facts.Release()
	}
}

func TestSource_ForwardedHeader(t *testing.T) {
	for name, want := range map[string]string{"": "X-Forwarded-For", "x-real-ip": "X-Real-Ip", "FORWARDED": "Forwarded"} {
		source := newSource(t, httpfacts.Config{Trust: httpfacts.Trust{Hops: 1, Header: name}})
		if got := source.ForwardedHeader(); got != want || got != http.CanonicalHeaderKey(got) {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}
