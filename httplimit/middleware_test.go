// SPDX-License-Identifier: Apache-2.0

package httplimit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/httplimit"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// A clock stands still until it is moved.
type clock struct{ now atomic.Int64 }

func (c *clock) instant() bucket.Instant { return bucket.Instant(c.now.Load()) }
func (c *clock) add(d time.Duration)     { c.now.Add(d.Microseconds()) }

func newLimiter(t testing.TB, store mete.Store, rules string) *mete.Limiter {
	t.Helper()
	m, err := policy.Load([]byte(rules), policy.Options{})
	if err != nil {
		t.Fatalf("policy.Load: %v", err)
	}
	lim, err := mete.New(store, m, mete.Config{})
	if err != nil {
		t.Fatalf("mete.New: %v", err)
	}
	return lim
}

func newMiddleware(t testing.TB, lim *mete.Limiter, config httplimit.Config) *httplimit.Middleware {
	t.Helper()
	m, err := httplimit.New(lim, config)
	if err != nil {
		t.Fatalf("httplimit.New(%+v): %v", config, err)
	}
	return m
}

// ok is a handler that is always reached where the policy allows it.
var ok = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("hello")) })

// get answers r with handler.
func serve(handler http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

const byAddress = `{"name": "free", "limit_keys": ["ip:address"], "algorithm": "token_bucket",
	"algorithm_config": {"rps": 0.5, "burst": 2}}`

func TestWrap(t *testing.T) {
	var clock clock
	clock.add(time.Hour)
	lim := newLimiter(t, storetest.NewModel(clock.instant), byAddress)
	handler := newMiddleware(t, lim, httplimit.Config{DisableJitter: true}).Wrap(ok)
	get := func() *httptest.ResponseRecorder { return serve(handler, httptest.NewRequest("GET", "/", nil)) }

	for i, want := range []string{`"free";r=1;t=2`, `"free";r=0;t=2`} {
		w := get()
		if got := w.Header().Values("RateLimit"); w.Code != http.StatusOK || w.Body.String() != "hello" || len(got) != 1 || got[0] != want {
			t.Fatalf("request %d: got status %d, body %q, RateLimit %q, want 200, hello, %s", i, w.Code, w.Body, got, want)
		}
		if got := w.Header().Get("RateLimit-Policy"); got != `"free";q=2;w=4` {
			t.Errorf("request %d: got RateLimit-Policy %s", i, got)
		}
	}
	clock.add(2*time.Second - time.Microsecond)
	w := get()
	if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "1" || w.Header().Get("X-RateLimit-Reason") != "token_bucket_exceeded" {
		t.Errorf("a microsecond early: got status %d, header %v", w.Code, w.Header())
	}
	var problem struct {
		Type     string   `json:"type"`
		Violated []string `json:"violated-policies"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &problem); err != nil || !strings.HasSuffix(problem.Type, "#quota-exceeded") || len(problem.Violated) != 1 {
		t.Errorf("got body %s (%v)", w.Body, err)
	}
	if strings.Contains(w.Body.String(), "192.0.2.1") {
		t.Errorf("the body names the client's address: %s", w.Body)
	}
	clock.add(time.Microsecond)
	if w := get(); w.Code != http.StatusOK {
		t.Errorf("after exactly the wait: got status %d", w.Code)
	}
}

func TestWrap_TellsClientsApart(t *testing.T) {
	type request struct{ peer, forwarded string }
	const proxy, other = "10.0.0.1:80", "198.51.100.1:80"
	for _, tt := range []struct {
		what   string
		config httplimit.Config
		one    request // spends one token, and so does
		two    request
		same   bool // whether that was the same bucket's
	}{
		{"two peers", httplimit.Config{}, request{proxy, ""}, request{other, ""}, false},
		{"one peer, two ports", httplimit.Config{}, request{proxy, ""}, request{"10.0.0.1:81", ""}, true},
		{"a header that nobody trusts", httplimit.Config{}, request{other, "1.1.1.1"}, request{other, "2.2.2.2"}, true},
		{"behind a trusted proxy", httplimit.Config{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
			request{proxy, "1.1.1.1"}, request{proxy, "2.2.2.2"}, false},
		{"spoofing behind a trusted proxy", httplimit.Config{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
			request{proxy, "1.1.1.1, 203.0.113.9"}, request{proxy, "2.2.2.2, 203.0.113.9"}, true},
		{"around a trusted proxy", httplimit.Config{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
			request{other, "1.1.1.1"}, request{other, "2.2.2.2"}, true},
		{"hops", httplimit.Config{TrustedHops: 1}, request{proxy, "9.9.9.9, 1.1.1.1"}, request{other, "1.1.1.1"}, true},
		{"an IPv6 network", httplimit.Config{}, request{"[2001:db8:0:1::1]:80", ""}, request{"[2001:db8:0:1:ffff::2]:80", ""}, true},
		{"two IPv6 networks", httplimit.Config{}, request{"[2001:db8:0:1::1]:80", ""}, request{"[2001:db8:0:2::1]:80", ""}, false},
		{"IPv4-mapped", httplimit.Config{}, request{"[::ffff:10.0.0.1]:80", ""}, request{proxy, ""}, true},
	} {
		var clock clock
		handler := newMiddleware(t, newLimiter(t, storetest.NewModel(clock.instant), byAddress), tt.config).Wrap(ok)
		var last string
		for _, req := range []request{tt.one, tt.two} {
			r := httptest.NewRequest("GET", "/", nil)
			r.RemoteAddr = req.peer
			if req.forwarded != "" {
				r.Header.Set("X-Forwarded-For", req.forwarded)
			}
			last = serve(handler, r).Header().Get("RateLimit-Remaining")
		}
		if same := last == "0"; same != tt.same {
			t.Errorf("%s: %v and %v: got one bucket %v, want %v", tt.what, tt.one, tt.two, same, tt.same)
		}
	}
}

// A client sees the same bytes with a shadow rule and without it.
func TestWrap_ShadowIsSilent(t *testing.T) {
	const free = `{"name": "free", "limit_keys": ["ip:address"], "algorithm": "token_bucket", "algorithm_config": {"rps": 1, "burst": 5}}`
	const shadow = `{"name": "next", "limit_keys": [], "mode": "shadow", "algorithm": "token_bucket", "algorithm_config": {"rps": 1, "burst": 1}}`
	var clock clock
	answers := func(rules string) string {
		handler := newMiddleware(t, newLimiter(t, storetest.NewModel(clock.instant), rules), httplimit.Config{DisableJitter: true}).Wrap(ok)
		var b bytes.Buffer
		for range 7 {
			if err := serve(handler, httptest.NewRequest("GET", "/", nil)).Result().Write(&b); err != nil {
				t.Fatal(err)
			}
		}
		return b.String()
	}
	without, with := answers(`{"rules": [`+free+`]}`), answers(`{"rules": [`+free+`,`+shadow+`]}`)
	if with != without {
		t.Errorf("with a shadow rule clients see\n%s\nwithout\n%s", with, without)
	}
	if alone := answers(`{"rules": [` + shadow + `]}`); strings.Contains(strings.ToLower(alone), "ratelimit") {
		t.Errorf("a shadow rule alone shows:\n%s", alone)
	}
}

// A brokenStore never answers.
type brokenStore struct{ mete.Store }

func (brokenStore) Take(context.Context, []bucket.Snapshot, []store.Charge, mete.Mode) ([]bucket.Snapshot, bool, error) {
	return nil, false, &mete.StoreError{Op: "take", Store: "broken", Err: errors.New("secret address 10.1.2.3")}
}

func TestWrap_BrokenStore(t *testing.T) {
	for then, want := range map[string]int{"open": http.StatusOK, "closed": http.StatusServiceUnavailable} {
		rules := strings.Replace(byAddress, `"name"`, `"on_store_error": "`+then+`", "name"`, 1)
		w := serve(newMiddleware(t, newLimiter(t, brokenStore{}, rules), httplimit.Config{}).Wrap(ok), httptest.NewRequest("GET", "/", nil))
		if w.Code != want || w.Header().Values("RateLimit") != nil || w.Header().Values("RateLimit-Limit") != nil {
			t.Errorf("%s: got status %d, header %v, want status %d without RateLimit", then, w.Code, w.Header(), want)
		}
		if strings.Contains(w.Body.String(), "secret") {
			t.Errorf("%s: the body shows the store's error: %s", then, w.Body)
		}
		if got := w.Header().Get("Retry-After"); (got != "") != (then == "closed") {
			t.Errorf("%s: got Retry-After %q", then, got)
		}
	}
}

func TestWrap_EndedContext(t *testing.T) {
	var clock clock
	reached := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler was called") })
	handler := newMiddleware(t, newLimiter(t, storetest.NewModel(clock.instant), byAddress), httplimit.Config{}).Wrap(reached)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := serve(handler, httptest.NewRequest("GET", "/", nil).WithContext(ctx))
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("got status %d, want 503", w.Code)
	}
}

func TestWrap_MissingAttribute(t *testing.T) {
	const rules = `{"name": "keyed", "limit_keys": ["header:x-api-key"], "on_missing": "deny", "algorithm": "token_bucket",
		"algorithm_config": {"rps": 1, "burst": 1}}`
	var clock clock
	handler := newMiddleware(t, newLimiter(t, storetest.NewModel(clock.instant), rules), httplimit.Config{}).Wrap(ok)
	w := serve(handler, httptest.NewRequest("GET", "/", nil))
	if w.Code != http.StatusForbidden || w.Header().Get("Retry-After") != "" {
		t.Errorf("got status %d, Retry-After %q, want 403 and none", w.Code, w.Header().Get("Retry-After"))
	}
}

// A path that the handler could interpret differently is rejected if a rule reads the path. It is still charged.
func TestWrap_RejectsAmbiguousPaths(t *testing.T) {
	const byPath = `{"name": "admin", "limit_keys": [], "match": {"path": "/admin/*"}, "algorithm": "token_bucket",
		"algorithm_config": {"rps": 1, "burst": 100}}`
	var clock clock
	store := storetest.NewModel(clock.instant)
	looks := newMiddleware(t, newLimiter(t, store, byPath), httplimit.Config{}).Wrap(ok)
	looksNot := newMiddleware(t, newLimiter(t, store, byAddress), httplimit.Config{}).Wrap(ok)
	for _, target := range []string{"/admin/%2e%2e/x", "/admin/..;/x", "/x/..%2fadmin/x", "/admin/x%00"} {
		w := serve(looks, httptest.NewRequest("GET", target, nil))
		if w.Code != http.StatusBadRequest || w.Header().Get("Content-Type") != "application/problem+json" || w.Header().Values("RateLimit") != nil {
			t.Errorf("%s: got status %d, %v, %s, want 400 and a problem", target, w.Code, w.Header(), w.Body)
		}
		r := httptest.NewRequest("GET", target, nil)
		r.RemoteAddr = target
		if w := serve(looksNot, r); w.Code != http.StatusOK {
			t.Errorf("%s, which no rule looks at: got status %d, want 200", target, w.Code)
		}
	}
	if w := serve(looks, httptest.NewRequest("GET", "/x/../admin/y", nil)); w.Code != 200 || w.Header().Get("RateLimit") != `"admin";r=97;t=97` {
		t.Errorf("/x/../admin/y: got status %d, %v, want 200 and 97 left", w.Code, w.Header())
	}
}

// Some servers serve "post" as they serve POST, and it has no limit of its own.
func TestWrap_MethodCase(t *testing.T) {
	const rules = `{"name": "writes", "limit_keys": ["method"], "match": {"method": ["POST", "Patch"]}, "algorithm": "token_bucket",
		"algorithm_config": {"rps": 1, "burst": 1}}`
	var clock clock
	handler := newMiddleware(t, newLimiter(t, storetest.NewModel(clock.instant), rules), httplimit.Config{}).Wrap(ok)
	for _, tt := range []struct {
		method string
		want   int
	}{{"POST", 200}, {"post", 429}, {"PosT", 429}, {"patch", 200}, {"PATCH", 429}, {"get", 200}, {"get", 200}} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Method = tt.method
		if w := serve(handler, r); w.Code != tt.want {
			t.Errorf("%s: got %d, want %d", tt.method, w.Code, tt.want)
		}
	}
}

func TestWrap_Attribute(t *testing.T) {
	const rules = `{"name": "tenants", "limit_keys": ["tenant"], "match": {"jwt:plan": "free"}, "algorithm": "token_bucket",
		"algorithm_config": {"rps": 1, "burst": 1}}`
	var clock clock
	supply := func(r *http.Request, a policy.Attribute) (string, bool) {
		switch a.String() {
		case "tenant":
			return r.URL.Query().Get("t"), true
		case "jwt:plan":
			return "free", r.URL.Path == "/free"
		}
		return "", false
	}
	handler := newMiddleware(t, newLimiter(t, storetest.NewModel(clock.instant), rules), httplimit.Config{Attribute: supply}).Wrap(ok)
	for _, tt := range []struct {
		target string
		want   int
	}{{"/free?t=a", 200}, {"/free?t=b", 200}, {"/free?t=a", 429}, {"/paid?t=a", 200}} {
		if w := serve(handler, httptest.NewRequest("GET", tt.target, nil)); w.Code != tt.want {
			t.Errorf("%s: got status %d, want %d", tt.target, w.Code, tt.want)
		}
	}
}

// Every client's Retry-After is its own, and stays the same.
func TestWrap_Jitter(t *testing.T) {
	const rules = `{"name": "all", "limit_keys": [], "algorithm": "token_bucket", "algorithm_config": {"rate": "1/1h", "burst": 1}}`
	var clock clock
	handler := newMiddleware(t, newLimiter(t, storetest.NewModel(clock.instant), rules), httplimit.Config{}).Wrap(ok)
	told := map[string]bool{}
	for range 3 {
		for _, peer := range []string{"192.0.2.1:1", "192.0.2.2:1", "192.0.2.3:1", "192.0.2.4:1"} {
			r := httptest.NewRequest("GET", "/", nil)
			r.RemoteAddr = peer
			if w := serve(handler, r); w.Code == http.StatusTooManyRequests {
				told[peer+" "+w.Header().Get("Retry-After")] = true
			}
		}
	}
	if len(told) != 4 {
		t.Errorf("4 clients were told %v", told)
	}
}

// The rule's fields and jitter replace the configuration's.
func TestWrap_RuleFields(t *testing.T) {
	const rules = `{"rules": [
		{"name": "shown", "limit_keys": [], "headers": ["x"], "jitter": "100%", "algorithm": "token_bucket", "algorithm_config": {"rate": "1/1h", "burst": 1}},
		{"name": "hidden", "limit_keys": ["ip:address"], "headers": "none", "algorithm": "token_bucket", "algorithm_config": {"rate": "1/1h", "burst": 2}},
		{"name": "usual", "limit_keys": ["method"], "algorithm": "token_bucket", "algorithm_config": {"rate": "1/1h", "burst": 3}}]}`
	var clock clock
	config := httplimit.Config{Fields: []string{"draft-11"}, DisableJitter: true}
	handler := newMiddleware(t, newLimiter(t, storetest.NewModel(clock.instant), rules), config).Wrap(ok)
	told := map[string]bool{}
	for i := range 20 {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = fmt.Sprintf("192.0.2.%d:1", i)
		w := serve(handler, r)
		h := w.Header()
		if draft := strings.Join(h.Values("RateLimit"), ","); !strings.HasPrefix(draft, `"usual";r=2;`) || strings.Contains(draft, ",") {
			t.Errorf("request %d: got RateLimit %q, want the usual limit alone", i, draft)
		}
		if h.Values("X-RateLimit-Remaining") == nil || h.Get("X-RateLimit-Remaining") != "0" || h.Values("RateLimit-Limit") != nil {
			t.Errorf("request %d: got %v, want X-RateLimit-Remaining 0 and no legacy field", i, h)
		}
		if i == 0 {
			continue
		}
		wait, err := strconv.Atoi(h.Get("Retry-After"))
		if w.Code != http.StatusTooManyRequests || err != nil || wait < 3600 || wait > 7200 {
			t.Errorf("request %d: got %d with Retry-After %q, want 429 and 3600 to 7200", i, w.Code, h.Get("Retry-After"))
		}
		told[h.Get("Retry-After")] = true
	}
	if len(told) < 15 {
		t.Errorf("19 clients were told %v, want a time for each", told)
	}
}

func TestWrap_AdmitsExactly(t *testing.T) {
	const rules = `{"name": "all", "limit_keys": [], "algorithm": "token_bucket", "algorithm_config": {"rate": "1/1h", "burst": 100}}`
	var clock clock
	var reached atomic.Int64
	count := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) })
	handler := newMiddleware(t, newLimiter(t, storetest.NewModel(clock.instant), rules), httplimit.Config{}).Wrap(count)
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			for range 20 {
				serve(handler, httptest.NewRequest("GET", "/", nil))
			}
		})
	}
	group.Wait()
	if got := reached.Load(); got != 100 {
		t.Errorf("%d requests were admitted, want 100", got)
	}
}

func TestNew_ReportsEveryError(t *testing.T) {
	_, err := httplimit.New(nil, httplimit.Config{
		TrustedHops: -1, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("::/0")}, Fields: []string{"draft-99"},
	})
	if err == nil {
		t.Fatal("got no error")
	}
	if got := err.Error(); !strings.HasPrefix(got, "httplimit: new: ") {
		t.Errorf("got error %q, want one that names this package first", got)
	}
	for _, want := range []string{"limiter is required", "-1 hops", "cannot be combined", "contains every address", `"draft-99"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got error\n%v\nwhich lacks %q", err, want)
		}
	}
}
