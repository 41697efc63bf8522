// SPDX-License-Identifier: Apache-2.0

package httpfacts_test

import (
	"bufio"
	"net/http"
	"strings"
	"testing"

	"github.com/metehq/mete/internal/httpfacts"
)

// A repeated value is disputed only if a rule reads it, because servers use different values.
func TestDispute_Duplicates(t *testing.T) {
	const get = "GET / HTTP/1.1\r\nHost: a\r\n"
	for _, tt := range []struct {
		request, attribute string
		value              string // that rules read
		disputed           string // a part of the sentence; "": it is not
	}{
		{get + "X-Key: a\r\n", "header:x-key", "a", ""},
		{get + "X-Key: a\r\nX-Other: b\r\nX-Other: c\r\n", "header:x-key", "a", ""},
		{get + "X-Key: a\r\nx-key: b\r\n", "header:x-key", "a", `"x-key"`},
		{get + "X-Key: a\r\nX-Key: a\r\n", "header:x-key", "a", `"x-key"`},
		{get + "X-Key:\r\nX-Key: a\r\n", "header:x-key", "", `"x-key"`},
		{get + "Content-Type: text/plain\r\nContent-Type: application/json\r\n", "header:content-type", "text/plain", `"content-type"`},
		{get + "Accept: text/html\r\nAccept: */*\r\n", "header:accept", "text/html, */*", ""},
		{get + "Cookie: a=1\r\nCookie: b=2\r\n", "header:cookie", "a=1; b=2", ""},
		{get + "X-Key: a\r\nTransfer-Encoding: chunked\r\nTrailer: X-Key\r\n", "header:x-key", "a", "trailer"},
		{get + "X-Key: a\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n", "header:x-key", "a", ""},
		{get + "Authorization: Bearer a.b.c\r\nAuthorization: Bearer d.e.f\r\n", "jwt:sub", missing, `"authorization"`},
		{get + "Authorization: Bearer a.b.c\r\n", "jwt:sub", missing, ""},

		{"GET /?key=a&x=1&x=2", "query:key", "a", ""},
		{"GET /?key=a&key=b", "query:key", "a", `"key"`},
		{"GET /?key=a&k%65y=b", "query:key", "a", `"key"`},
		{"GET /?k%65y=b", "query:key", "b", ""},
		{"GET /?KEY=b", "query:key", missing, `"key"`},
		{"GET /?key[]=b", "query:key", missing, `"key"`},
		{"GET /?key%5B0%5D=b", "query:key", missing, `"key"`},
		{"GET /?key%00x=b", "query:key", missing, `"key"`},
		{"GET /?+key=b", "query:key", missing, `"key"`},
		{"GET /?api.key=b", "query:api_key", missing, `"api_key"`},
		{"GET /?api%20key=b", "query:api_key", missing, `"api_key"`},
		{"GET /?api-key=b", "query:api_key", missing, ""},
		{"GET /?keys=b&ke=c&key2=d&monkey=e", "query:key", missing, ""},
		{"GET /?x=1;key=b", "query:key", missing, `"key"`},
		{"GET /?key=a;b", "query:key", missing, `"key"`},
		{"GET /?x=a;b&key=c", "query:key", "c", ""},
		{"GET /?%u0061pi_key=b", "query:api_key", missing, `"api_key"`},
		{"GET /?api%_key=b", "query:api_key", missing, `"api_key"`},
		{"GET /?other%u0061=b", "query:api_key", missing, ""},
		{"GET /?key=%zz", "query:key", missing, `"key"`},
		{"GET /?other=%zz&key=a+b", "query:key", "a b", ""},

		{get + "Cookie: s=a; t=1; t=2\r\n", "cookie:s", "a", ""},
		{get + "Cookie: s=a; s=b\r\n", "cookie:s", "a", `"s"`},
		{get + "Cookie: s=a\r\nCookie: t=1; s=b\r\n", "cookie:s", "a", `"s"`},
		{get + "Cookie: S=a\r\n", "cookie:s", missing, `"s"`},
		{get + "Cookie: s =a\r\n", "cookie:s", missing, `"s"`},
		{get + "Cookie: t=1, s=a\r\n", "cookie:s", missing, `"s"`},
		{get + "Cookie: t=1,2; s=a,b\r\n", "cookie:s", "a,b", ""},
		{get + "Cookie: s=\"a\\162\"\r\n", "cookie:s", `a\162`, `"s"`},
		{get + "Cookie: s=\"a; t=b\"\r\n", "cookie:s", `"a`, `"s"`},
		{get + "Cookie: s=\"a b\"\r\n", "cookie:s", "a b", ""},
		{get + "Cookie: s= \ta ; t=b\r\n", "cookie:s", "a", ""},
		{get + "Cookie: x,s=a\r\n", "cookie:s", missing, `"s"`},
		{get + "Cookie: s=s%3A%61b%zz%\r\n", "cookie:s", "s:ab%zz%", ""},

		{get + "X-HTTP-Method-Override: DELETE\r\n", "method", "GET", "X-Http-Method-Override"},
		{get + "X-Method-Override: DELETE\r\n", "method", "GET", "X-Method-Override"},
		{get + "X-HTTP-Method: DELETE\r\n", "method", "GET", "X-Http-Method"},
		{get + "X-HTTP-Method-Override: DELETE\r\n", "path", "/", ""},
	} {
		text := tt.request
		if !strings.Contains(text, "\r\n") {
			text += " HTTP/1.1\r\nHost: a\r\n"
		}
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text + "\r\n")))
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		facts := newSource(t, httpfacts.Config{UnverifiedClaims: true}).Facts(r)
		if got := facts.Ambiguity(); got != "" {
			t.Errorf("%q: disputed before anything was asked for: %s", text, got)
		}
		value, ok := facts.Lookup(attribute(t, tt.attribute))
		if !ok {
			value = missing
		}
		got := facts.Ambiguity()
		if value != tt.value || (got != "") != (tt.disputed != "") || !strings.Contains(got, tt.disputed) {
			t.Errorf("%q, asked for %s: got %q, disputed by %q; want %q, %q", text, tt.attribute, value, got, tt.value, tt.disputed)
		}
		facts.Release()
	}
}

// An adapter in front of other servers disputes names that they may confuse. Others compare exact names.
func TestDispute_LookAlikes(t *testing.T) {
	for sent, want := range map[string]bool{
		"X_api_key": true, "X-Api_key": true, "X.api.key": true, "X_API_KEY": true,
		"X-Api-Keys": false, "X_api_keys": false, "Xxapi-Key": false, "X-Api-Kex": false, "X~": false,
	} {
		for _, lookAlikes := range []bool{true, false} {
			r := &http.Request{Header: http.Header{sent: {"real"}}}
			facts := newSource(t, httpfacts.Config{LookAlikes: lookAlikes}).Facts(r)
			if value, ok := facts.Lookup(attribute(t, "header:x-api-key")); ok {
				t.Errorf("%s: rules read %q", sent, value)
			}
			if got := facts.Ambiguity(); (got != "") != (want && lookAlikes) || got != "" && !strings.Contains(got, sent) {
				t.Errorf("%s, look-alikes %v: disputed by %q, want %v", sent, lookAlikes, got, want)
			}
			facts.Release()
		}
	}
}

// Look-alikes of fields that override the method are disputed, too. A proxy that sends
// look-alikes on disputes them in one request.
func TestDispute_LookAlikesOfMethodAndTrailer(t *testing.T) {
	for _, tt := range []struct {
		header, trailer http.Header
		attribute       string
		want            string
	}{
		{http.Header{"X_http_method_override": {"DELETE"}}, nil, "method", "X_http_method_override"},
		{http.Header{"X_HTTP_Method": {"DELETE"}}, nil, "method", "X_HTTP_Method"},
		{http.Header{"X.Method-Override": {"DELETE"}}, nil, "method", "X.Method-Override"},
		{http.Header{"X_method": {"DELETE"}}, nil, "method", ""},
		{nil, http.Header{"X_api_key": nil}, "header:x-api-key", "X_api_key"},
	} {
		for _, how := range []string{"source", "request", "neither"} {
			r := (&http.Request{Method: "POST", Header: tt.header, Trailer: tt.trailer}).WithContext(t.Context())
			facts := newSource(t, httpfacts.Config{LookAlikes: how == "source"}).Facts(r)
			if how == "request" {
				facts.DisputeLookAlikes()
			}
			facts.Lookup(attribute(t, tt.attribute))
			got := facts.Ambiguity()
			if want := tt.want != "" && how != "neither"; (got != "") != want || want && !strings.Contains(got, tt.want) {
				t.Errorf("%v %v, %s asks: disputed by %q, want %q", tt.header, tt.trailer, how, got, tt.want)
			}
			facts.Release()
		}
	}
}

// One token is one value, in whatever case its scheme is sent.
func TestLookup_Credentials(t *testing.T) {
	for sent, want := range map[string]string{
		"Bearer abc": "Bearer abc", "bearer abc": "Bearer abc", "BEARER   abc": "Bearer abc", "bEarer\tabc": "Bearer abc",
		"basic eDp5": "Basic eDp5", "digest username=x": "Digest username=x", "Bearerabc": "Bearerabc", "bearerabc": "bearerabc",
		"Bearer": "Bearer", "": "", "token abc": "token abc", "AWS4-HMAC-SHA256 x": "AWS4-HMAC-SHA256 x",
	} {
		r := &http.Request{Header: http.Header{"Authorization": {sent}}}
		if got, ok := lookup(t, newSource(t, httpfacts.Config{}), r, "header:authorization"); got != want || !ok {
			t.Errorf("%q: got %q, want %q", sent, got, want)
		}
	}
}

// A dispute costs a request nothing that has none.
func TestDispute_AllocatesNothing(t *testing.T) {
	source := newSource(t, httpfacts.Config{LookAlikes: true})
	r := typical()
	r.Header.Set("Authorization", "Bearer abc")
	for _, name := range append([]string{"header:authorization"}, usual...) {
		a := attribute(t, name)
		if got := testing.AllocsPerRun(100, func() {
			facts := source.Facts(r)
			facts.Lookup(a)
			if facts.Ambiguity() != "" {
				t.Errorf("asked for %s: disputed", name)
			}
			facts.Release()
		}); got != 0 {
			t.Errorf("Lookup(%s) allocates %v times, want 0", name, got)
		}
	}
}
