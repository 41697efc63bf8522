// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/metehq/mete/httpapi"
)

// perPlace has one rule for GET /cheap on api.example, which gives each client
// address one token, and another for everything else.
const perPlace = `{"rules": [
	{"name": "cheap", "limit_keys": ["ip:address"], "match": {"path": "/cheap", "method": "GET", "host": "api.example"},
	 "algorithm": "token_bucket", "algorithm_config": {"rps": 0.5, "burst": 1}},
	{"name": "other", "limit_keys": ["ip:address"], "on_store_error": "closed",
	 "algorithm": "token_bucket", "algorithm_config": {"rps": 1, "burst": 5}}]}`

const gatewayAddr = "192.0.2.1"

func gatewayAPI(t *testing.T, profile httpapi.Profile) *httpapi.API {
	api, _ := newAPI(t, perPlace, httpapi.Config{Gateway: httpapi.Gateway{
		Profile: profile, TrustedProxies: []netip.Prefix{netip.MustParsePrefix(gatewayAddr + "/32")}, DisableJitter: true,
	}})
	return api
}

// ask asks as the gateway would, with headers as "Name: value".
func ask(api http.Handler, method string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "/v1/decision?ignored=1", strings.NewReader("ignored"))
	r.RemoteAddr = gatewayAddr + ":4711"
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Add(name, value)
	}
	w := httptest.NewRecorder()
	api.ServeHTTP(w, r)
	return w
}

// rule returns the name of the only rule that the answer speaks of.
func rule(w *httptest.ResponseRecorder) string {
	name, _, _ := strings.Cut(strings.Join(w.Header().Values("RateLimit"), ","), ";")
	return strings.Trim(name, `"`)
}

var (
	nginxCheap = []string{"X-Original-Method: GET", "X-Original-URI: /cheap?x=1", "X-Original-Host: api.example"}
	caddyCheap = []string{"X-Forwarded-Method: GET", "X-Forwarded-Uri: /cheap?x=1", "X-Forwarded-Host: api.example"}
	cheapBy    = map[httpapi.Profile][]string{
		httpapi.ProfileNGINX: nginxCheap, httpapi.ProfileNGINXLua: nginxCheap, httpapi.ProfileHAProxy: nginxCheap,
		httpapi.ProfileTraefik: caddyCheap, httpapi.ProfileCaddy: caddyCheap,
	}
)

func TestDecision_Answers(t *testing.T) {
	for profile, cheap := range cheapBy {
		for _, method := range []string{"GET", "POST", "HEAD", "PROPFIND"} {
			api := gatewayAPI(t, profile)
			client := append([]string{"X-Forwarded-For: 198.51.100.7"}, cheap...)
			w := ask(api, method, client...)
			if got := w.Header().Values("RateLimit"); w.Code != 200 || w.Body.Len() > 0 || len(got) != 1 || got[0] != `"cheap";r=0;t=2` {
				t.Errorf("%s %s: got %d %q with RateLimit %q, want 200, empty, and the cheap rule's", profile, method, w.Code, w.Body, got)
			}
			wantStatus, wantField := 429, ""
			if profile == httpapi.ProfileNGINX {
				wantStatus, wantField = 403, "429"
			}
			w = ask(api, method, client...)
			if h := w.Header(); w.Code != wantStatus || strings.Join(h.Values("X-RateLimit-Status"), ",") != wantField ||
				h.Get("Retry-After") != "2" || h.Get("Cache-Control") != "no-store" || h.Get("Content-Type") != "application/problem+json" {
				t.Errorf("%s %s, denied: got %d with %v, want %d with X-RateLimit-Status %q", profile, method, w.Code, h, wantStatus, wantField)
			}
			if w := ask(api, method, append([]string{"X-Forwarded-For: 198.51.100.8"}, cheap...)...); w.Code != 200 {
				t.Errorf("%s %s, another client: got %d %s, want 200", profile, method, w.Code, w.Body)
			}
		}
	}
}

// Every profile gets the response that the policy defines. The profile nginx gets its status in a header.
func TestDecision_Denial(t *testing.T) {
	for profile, cheap := range cheapBy {
		api, _ := newAPI(t, `{"name": "r", "limit_keys": ["ip:address"], "rate": "1/1h", "denial": {"status": 451, "body": "wait {{retry_after}} s"}}`, httpapi.Config{Gateway: httpapi.Gateway{
			Profile: profile, TrustedProxies: []netip.Prefix{netip.MustParsePrefix(gatewayAddr + "/32")}, DisableJitter: true,
		}})
		client := append([]string{"X-Forwarded-For: 198.51.100.7"}, cheap...)
		ask(api, "GET", client...)
		w := ask(api, "GET", client...)
		wantStatus, wantField := 451, ""
		if profile == httpapi.ProfileNGINX {
			wantStatus, wantField = 403, "451"
		}
		if w.Code != wantStatus || w.Header().Get("X-RateLimit-Status") != wantField || w.Body.String() != "wait 3600 s" || w.Header().Get("Content-Type") != "text/plain; charset=utf-8" {
			t.Errorf("%s: got %d %v %s, want %d", profile, w.Code, w.Header(), w.Body, wantStatus)
		}
		if w := ask(api, "HEAD", client...); w.Body.Len() > 0 || w.Code != wantStatus {
			t.Errorf("%s HEAD: got %d %s, want no body", profile, w.Code, w.Body)
		}
	}
}

func TestDecision_ReadsOnlyItsProfile(t *testing.T) {
	costly := func(headers []string) []string {
		return append([]string{headers[0], strings.Replace(headers[1], "/cheap", "/costly", 1)}, headers[2:]...)
	}
	for _, tt := range []struct {
		profile httpapi.Profile
		own     []string
		foreign []string // sent by a client
	}{
		{httpapi.ProfileNGINX, costly(nginxCheap), caddyCheap},
		{httpapi.ProfileNGINXLua, costly(nginxCheap), caddyCheap},
		{httpapi.ProfileHAProxy, costly(nginxCheap), caddyCheap},
		{httpapi.ProfileTraefik, costly(caddyCheap), nginxCheap},
		{httpapi.ProfileCaddy, costly(caddyCheap), nginxCheap},
	} {
		w := ask(gatewayAPI(t, tt.profile), "GET", append(tt.own, tt.foreign...)...)
		if got := rule(w); got != "other" {
			t.Errorf("%s: a client names a cheap path in headers of another profile: got rule %q (%d), want other", tt.profile, got, w.Code)
		}
		if w := ask(gatewayAPI(t, tt.profile), "GET", tt.foreign...); w.Code != 400 {
			t.Errorf("%s: headers of another profile only: got %d, want 400", tt.profile, w.Code)
		}
	}
}

func TestDecision_RejectsIncompleteRequests(t *testing.T) {
	for profile, cheap := range cheapBy {
		for i, header := range cheap {
			name, _, _ := strings.Cut(header, ":")
			others := append(append([]string{}, cheap[:i]...), cheap[i+1:]...)
			for what, headers := range map[string][]string{
				"missing": others,
				"empty":   append(others, name+": "),
				"twice":   append(others, header, header),
			} {
				if w := ask(gatewayAPI(t, profile), "GET", headers...); w.Code != 400 || !strings.Contains(w.Body.String(), http.CanonicalHeaderKey(name)) {
					t.Errorf("%s: %s %s: got %d %s, want 400 that names it", profile, name, what, w.Code, w.Body)
				}
			}
		}
	}
	for _, uri := range []string{"cheap", "/%zz", "?x=1", "/a b"} {
		w := ask(gatewayAPI(t, httpapi.ProfileNGINX), "GET", nginxCheap[0], "X-Original-URI: "+uri, nginxCheap[2])
		if w.Code != 400 {
			t.Errorf("X-Original-URI %q: got %d %s, want 400", uri, w.Code, w.Body)
		}
	}
}

func TestDecision_AsksTheRightPath(t *testing.T) {
	for uri, want := range map[string]string{
		"/cheap": "cheap", "/cheap?": "cheap", "/cheap?a=/b": "cheap", "//cheap": "cheap", "/x/../cheap": "cheap",
		"/%63heap": "cheap", "http://api.example/cheap": "cheap", "/cheap/": "other", "/CHEAP": "other",
		"/cheap?x=1": "cheap", "/cheap%3Fx=1": "other", "/cheap?x=1?y#z": "cheap", "/cheap;x=1": "cheap", "/%2563heap": "other", "/cheap%23": "other", "/": "other",
	} {
		w := ask(gatewayAPI(t, httpapi.ProfileNGINX), "GET", nginxCheap[0], "X-Original-URI: "+uri, nginxCheap[2])
		if got := rule(w); got != want {
			t.Errorf("X-Original-URI %q: got rule %q (%d %s), want %q", uri, got, w.Code, w.Body, want)
		}
	}
}

// A path that servers interpret differently is rejected if a rule reads the path.
func TestDecision_RejectsAmbiguousPaths(t *testing.T) {
	for _, uri := range []string{"/cheap/%2e%2e/costly", "/cheap/..%2fcostly", "/x/..;/cheap", "/cheap#x", "/cheap%00", "/cheap\xa0", "*", "http:http://api.example/cheap"} {
		for profile, headers := range cheapBy {
			wantStatus, wantField := 400, ""
			if profile == httpapi.ProfileNGINX {
				wantStatus, wantField = 403, "400"
			}
			name, _, _ := strings.Cut(headers[1], ":")
			w := ask(gatewayAPI(t, profile), "GET", headers[0], name+": "+uri, headers[2])
			if w.Code != wantStatus || strings.Join(w.Header().Values("X-RateLimit-Status"), ",") != wantField || w.Header().Values("RateLimit") != nil {
				t.Errorf("%s, %q: got %d %s with %v, want %d", profile, uri, w.Code, w.Body, w.Header(), wantStatus)
			}
		}
	}
}

// The rule's fields and jitter replace the configuration's. POST /v1/take, which informs a program, ignores both.
func TestDecision_RuleFields(t *testing.T) {
	const rules = `{"name": "all", "limit_keys": [], "headers": ["x", "legacy"], "jitter": 0,
		"algorithm": "token_bucket", "algorithm_config": {"rate": "1/1h", "burst": 1}}`
	api, _ := newAPI(t, rules, httpapi.Config{Gateway: httpapi.Gateway{Profile: httpapi.ProfileCaddy, TrustedHops: 1, Fields: []string{"draft-11"}}})
	for i, want := range []int{200, 429, 429, 429, 429} {
		w := ask(api, "GET", append(slices.Clone(caddyCheap), fmt.Sprintf("X-Forwarded-For: 198.51.100.%d", i))...)
		h := w.Header()
		if w.Code != want || h.Values("RateLimit") != nil || h.Values("RateLimit-Reset") == nil || h.Values("X-RateLimit-Limit") == nil {
			t.Errorf("got %d with %v, want %d with the legacy fields and those of x", w.Code, h, want)
		}
		if want == 429 && (h.Get("Retry-After") != "3600" || h.Get("RateLimit-Reset") != "3600") {
			t.Errorf("got Retry-After %q and RateLimit-Reset %q, want 3600", h.Get("Retry-After"), h.Values("RateLimit-Reset"))
		}
	}
	if w := post(api, "/v1/take?status=429", `{"attributes":{}}`); w.Code != 429 || w.Header().Values("RateLimit-Reset") != nil || w.Header().Get("Retry-After") != "3600" {
		t.Errorf("POST /v1/take: got %d with %v, want 429 without fields but Retry-After", w.Code, w.Header())
	}
}

func TestDecision_RefusesStrangers(t *testing.T) {
	api := gatewayAPI(t, httpapi.ProfileCaddy)
	r := httptest.NewRequest("GET", "/v1/decision", nil)
	r.RemoteAddr = "203.0.113.9:1"
	for _, header := range caddyCheap {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	api.ServeHTTP(w, r)
	if w.Code != 403 || w.Header().Get("X-RateLimit-Status") != "" {
		t.Errorf("asked by a stranger: got %d %s, want 403", w.Code, w.Body)
	}
}

func TestDecision_StoreFails(t *testing.T) {
	for profile, cheap := range cheapBy {
		api := apiOver(t, brokenStore{}, perPlace, httpapi.Config{Gateway: httpapi.Gateway{Profile: profile, TrustedHops: 1}})
		if w := ask(api, "GET", cheap...); w.Code != 200 || w.Header().Values("RateLimit") != nil {
			t.Errorf("%s, rule open: got %d with %v, want 200 without fields", profile, w.Code, w.Header())
		}
		wantStatus, wantField := 503, ""
		if profile == httpapi.ProfileNGINX {
			wantStatus, wantField = 403, "503"
		}
		w := ask(api, "GET", cheap[0], strings.Replace(cheap[1], "/cheap", "/other", 1), cheap[2])
		if body, _ := io.ReadAll(w.Body); w.Code != wantStatus || strings.Join(w.Header().Values("X-RateLimit-Status"), "") != wantField {
			t.Errorf("%s, rule closed: got %d %s, want %d with X-RateLimit-Status %q", profile, w.Code, body, wantStatus, wantField)
		}
	}
}

// A block is a denial like others: 429, or 403 with X-RateLimit-Status for a gateway without 429.
func TestDecision_Blocked(t *testing.T) {
	rules := `{"overrides": [{"id": "b", "action": "block", "match": {"ip:address": "192.0.2.77"}, "reason": "r", "author": "a",
		"expires_at": "2100-01-01T00:00:00Z"}], ` + perPlace[1:]
	for profile, want := range map[httpapi.Profile]int{
		httpapi.ProfileNGINX: 403, httpapi.ProfileNGINXLua: 429, httpapi.ProfileHAProxy: 429, httpapi.ProfileTraefik: 429, httpapi.ProfileCaddy: 429,
	} {
		api, _ := newAPI(t, rules, httpapi.Config{Gateway: httpapi.Gateway{
			Profile: profile, TrustedProxies: []netip.Prefix{netip.MustParsePrefix(gatewayAddr + "/32")},
		}})
		w := ask(api, "GET", append(slices.Clone(cheapBy[profile]), "X-Forwarded-For: 192.0.2.77")...)
		if w.Code != want || w.Header().Get("Retry-After") == "" || !slices.Equal(w.Header().Values("X-RateLimit-Reason"), []string{"blocked"}) ||
			(profile == httpapi.ProfileNGINX) != slices.Equal(w.Header().Values("X-RateLimit-Status"), []string{"429"}) {
			t.Errorf("%v: %d %v, want %d, until when and why", profile, w.Code, w.Header(), want)
		}
		if w := ask(api, "GET", append(slices.Clone(cheapBy[profile]), "X-Forwarded-For: 192.0.2.78")...); w.Code != 200 {
			t.Errorf("%v, another client: %d, want 200", profile, w.Code)
		}
	}
}

// Every profile has its headers. The error for an unknown profile lists the known ones.
func TestProfiles(t *testing.T) {
	for _, profile := range httpapi.Profiles() {
		if cheapBy[profile] == nil && profile != httpapi.ProfileEnvoy { // see gateway_envoy_test.go
			t.Errorf("profile %q has no tests", profile)
		}
	}
	if got, want := len(httpapi.Profiles()), len(cheapBy)+1; got != want {
		t.Errorf("got %d profiles, want %d", got, want)
	}
	_, err := httpapi.New(limiter(t, brokenStore{}, perPlace), httpapi.Config{Gateway: httpapi.Gateway{Profile: "apache", TrustedHops: 1}})
	for _, profile := range httpapi.Profiles() {
		if err == nil || !strings.Contains(err.Error(), string(profile)) {
			t.Errorf("profile apache: got error %v, want one that names %s", err, profile)
		}
	}
}

// Two hosts of one IPv6 network are one client, in either header and notation. So are an
// IPv4 address and the IPv6 address that it is mapped to.
func TestDecision_Clients(t *testing.T) {
	for _, tt := range []struct{ header, first, second string }{
		{"X-Forwarded-For", "2001:db8:1:2::1", "2001:db8:1:2:ffff::9"},
		{"X-Forwarded-For", "2001:db8:1:2::1", "[2001:DB8:1:2::abcd]:4711"},
		{"X-Forwarded-For", "fe80::1%eth0", "fe80::2%25eth1"},
		{"X-Forwarded-For", "198.51.100.7", "::ffff:198.51.100.7"},
		{"X-Forwarded-For", "::ffff:c633:6407", "198.51.100.7:4711"},
		{"X-Forwarded-For", "198.51.100.7", "192.0.2.66, 198.51.100.7, " + gatewayAddr},
		{"Forwarded", `for="[2001:db8:1:2::1]:80"`, `for="[2001:db8:1:2:3::]";proto=https`},
		{"Forwarded", "for=198.51.100.7", `for=192.0.2.66, FOR="[::ffff:198.51.100.7]:_port"`},
		{"Forwarded", "for=198.51.100.7", `for=unknown, for=198.51.100.7;by=_me, for=` + gatewayAddr},
	} {
		for _, hops := range []int{0, 1} {
			gateway := httpapi.Gateway{Profile: httpapi.ProfileHAProxy, ForwardedHeader: tt.header, TrustedHops: hops}
			if hops == 0 {
				gateway.TrustedProxies = []netip.Prefix{netip.MustParsePrefix(gatewayAddr + "/32")}
			} else if strings.HasSuffix(tt.second, gatewayAddr) {
				continue // by count, the gateway would be the client
			}
			other := "203.0.113.9"
			if tt.header == "Forwarded" {
				other = "for=" + other
			}
			api, _ := newAPI(t, perPlace, httpapi.Config{Gateway: gateway})
			for i, sent := range []string{tt.first, tt.second, other} {
				want := []int{200, 429, 200}[i]
				if w := ask(api, "GET", append(slices.Clone(nginxCheap), tt.header+": "+sent)...); w.Code != want {
					t.Errorf("%s: %s, then %s: got %d, want %d", tt.header, tt.first, sent, w.Code, want)
				}
			}
		}
	}
}
