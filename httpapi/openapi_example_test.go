// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/audit"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/overrides"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/storetest"
	"github.com/metehq/mete/topkeys"
)

// builtIn is the policy that mete serve has when it is given none.
const builtIn = `{"rules": [
	{"name": "per-key", "limit_keys": ["header:x-api-key"], "algorithm": "token_bucket", "algorithm_config": {"rps": 1, "burst": 5}},
	{"name": "per-client", "limit_keys": ["ip:address"], "algorithm": "token_bucket", "algorithm_config": {"rps": 10, "burst": 20}}]}`

// A world is a server with that policy at 2026-05-04T12:00:00Z, which it stays, as
// its documents show it.
type world struct {
	main, admin *httpapi.API
	clock       *clock
	reloading   error // result of a reload
	unready     error // of /readyz
}

func newWorld(t *testing.T) *world {
	t.Helper()
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	c := newClock()
	c.advance(now.Sub(time.UnixMicro(int64(c.now))))
	base, err := policy.Load([]byte(builtIn), policy.Options{HashKey: []byte("documents")})
	if err != nil {
		t.Fatal(err)
	}
	top, err := topkeys.New(topkeys.Config{}, c.read())
	if err != nil {
		t.Fatal(err)
	}
	lim, err := mete.New(storetest.NewModel(c.read), base, mete.Config{
		Now: c.read, OnDenial: func(_ context.Context, d *mete.Denial) { top.OnDenial(c.read(), d) },
	})
	if err != nil {
		t.Fatal(err)
	}
	m, err := overrides.New(base, overrides.Config{Apply: lim.SetPolicy, Logger: slog.New(slog.DiscardHandler), Now: func() bucket.Instant { return bucket.At(now) }})
	if err != nil {
		t.Fatal(err)
	}
	record, err := audit.New(audit.Config{
		Caller: func(*http.Request) (audit.Caller, bool) { return audit.Caller{Name: "kim", From: "192.0.2.10"}, true },
		Logger: slog.New(slog.DiscardHandler), Now: func() bucket.Instant { return bucket.At(now) },
	})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{clock: c}
	gateway := httpapi.Gateway{Profile: httpapi.ProfileNGINXLua, TrustedHops: 1, DisableJitter: true}
	if w.main, err = httpapi.New(lim, httpapi.Config{Gateway: gateway}); err != nil {
		t.Fatal(err)
	}
	w.admin, err = httpapi.New(lim, httpapi.Config{
		Admin: true, Overrides: m, Role: roleOfToken, Gateway: gateway,
		Top:    httpapi.Top{Tracker: top, Now: c.read, MaskKey: []byte("documents")},
		Reload: func(context.Context) error { return w.reloading },
		Ready:  func(context.Context) error { return w.unready },
		Audit:  record,
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// roleOfToken returns the role that a token names. A request without a token may read, as from the same machine.
func roleOfToken(r *http.Request) httpapi.Role {
	sent, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return httpapi.RoleRead
	}
	role, _ := httpapi.ParseRole(sent)
	return role
}

// examples are the examples of openapi.json in a possible order. Examples of requests without a body have their
// target here.
var examples = []struct{ method, path, name, target string }{
	{"POST", "/v1/take", "allowed", ""},
	{"POST", "/v1/take", "denied", ""},
	{"POST", "/v1/take", "never", ""},
	{"POST", "/v1/take", "batch", ""},
	{"POST", "/v1/take", "mistake", ""},
	{"GET", "/v1/bucket", "bucket", "/v1/bucket?key=per-client:ip=192.0.2.1"},
	{"POST", "/v1/bucket/reset", "reset", ""},
	{"POST", "/v1/bucket/take", "undo", ""},
	{"GET", "/v1/activity", "list", "/v1/activity"},
	{"POST", "/v1/peek", "denied", ""},
	{"POST", "/v1/explain", "denied", ""},
	{"POST", "/v1/rules/reset", "reset", ""},
	{"POST", "/v1/hold", "done", ""},
	{"POST", "/v1/renew", "done", ""},
	{"POST", "/v1/settle", "done", ""},
	{"POST", "/v1/release", "done", ""},
	{"POST", "/v1/refund", "done", ""},
	{"POST", "/v1/refund", "batch", ""},
	{"POST", "/v1/reset", "done", ""},
	{"GET", "/v1/top", "denied", "/v1/top?limit=5"},
	{"PUT", "/v1/overrides", "block", ""},
	{"PUT", "/v1/overrides", "raise", ""},
	{"PUT", "/v1/overrides", "mistakes", ""},
	{"POST", "/v1/take", "blocked", ""},
	{"GET", "/v1/overrides", "list", "/v1/overrides?audit=1"},
	{"DELETE", "/v1/overrides/{id}", "done", "/v1/overrides/scraper?author=kim&reason=over"},
	{"DELETE", "/v1/overrides/{id}", "absent", "/v1/overrides/scraper?author=kim&reason=over"},
	{"POST", "/v1/reload", "reloaded", "/v1/reload"},
	{"POST", "/v1/reload", "mistakes", "/v1/reload"},
	{"GET", "/livez", "ok", "/livez"},
	{"GET", "/readyz", "ok", "/readyz"},
	{"GET", "/readyz", "stopping", "/readyz"},
}

// The ID of an entry of the audit is another each time.
var entryID = regexp.MustCompile(`"id":"[A-Z2-7]{26}"`)

const entryIDShown = `"id":"URCNVFD27TIVGIBQC5272AAAA5"`

// Every example in openapi.json is exactly the response of a server.
func TestOpenAPI_Examples(t *testing.T) {
	d := readExamples(t)
	w := newWorld(t)
	for _, e := range examples {
		key := e.method + " " + e.path + " " + e.name
		if e.name == "mistakes" {
			w.reloading = errors.New(`policy.yaml:2:12: field "limit_keys" is missing`)
		}
		if e.name == "stopping" {
			w.unready = errStopping
		}
		target := e.target
		if target == "" {
			target = e.path
		}
		asked := d.requests[key]
		if (asked == "") != (e.target != "") {
			t.Errorf("%s: the document has the request %q", key, asked)
		}
		a := do(w.admin, e.method, target, asked, "Authorization", "Bearer configure")
		want := d.answers[key+" "+strconv.Itoa(a.Code)]
		if got := entryID.ReplaceAllString(strings.TrimSpace(a.Body.String()), entryIDShown); got != want {
			t.Errorf("%s %s\n got %d %s\nwant %s", key, asked, a.Code, got, want)
		}
		delete(d.requests, key)
		delete(d.answers, key+" "+strconv.Itoa(a.Code))
	}
	for key := range d.requests {
		t.Errorf("the request %s is never made", key)
	}
	for key := range d.answers {
		t.Errorf("nothing is answered %s", key)
	}
}

// documented are the examples of openapi.json as compact JSON: by method, path and
// name, and of answers by status, too.
type documented struct{ requests, answers map[string]string }

type media map[string]struct {
	Examples map[string]struct{ Value json.RawMessage }
}

func readExamples(t *testing.T) documented {
	t.Helper()
	text, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	d := documented{map[string]string{}, map[string]string{}}
	for path, item := range doc.Paths {
		for method, text := range item {
			if method == "servers" {
				continue
			}
			var o struct {
				RequestBody struct{ Content media }
				Responses   map[string]struct{ Content media }
			}
			if err := json.Unmarshal(text, &o); err != nil {
				t.Fatalf("%s %s: %v", method, path, err)
			}
			key := strings.ToUpper(method) + " " + path + " "
			o.RequestBody.Content.each(func(name, value string) { d.requests[key+name] = value })
			for status, r := range o.Responses {
				r.Content.each(func(name, value string) { d.answers[key+name+" "+status] = value })
			}
		}
	}
	return d
}

func (m media) each(do func(name, value string)) {
	for _, content := range m {
		for name, e := range content.Examples {
			var b bytes.Buffer
			if json.Compact(&b, e.Value) == nil {
				do(name, b.String())
			}
		}
	}
}
