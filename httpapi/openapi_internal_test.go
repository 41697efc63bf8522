// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/ai"
	"github.com/metehq/mete/aiusage"
	"github.com/metehq/mete/audit"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/monitor"
	"github.com/metehq/mete/overrides"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/storetest"
	"github.com/metehq/mete/topkeys"
)

// described is the part of the document that these tests read.
type described struct {
	Paths map[string]map[string]json.RawMessage
}

type operation struct {
	Role    string                     `json:"x-role"`
	Methods string                     `json:"x-methods"` // "any", or not there
	Answers map[string]json.RawMessage `json:"responses"`
}

// operations of a path, by their methods.
func (d *described) operations(t *testing.T, path string) map[string]operation {
	t.Helper()
	all := map[string]operation{}
	for name, text := range d.Paths[path] {
		if name == "servers" {
			continue
		}
		var o operation
		if err := json.Unmarshal(text, &o); err != nil {
			t.Fatalf("%s %s: %v", name, path, err)
		}
		all[strings.ToUpper(name)] = o
	}
	return all
}

func document(t *testing.T) *described {
	t.Helper()
	d := &described{}
	if err := json.Unmarshal(openAPI, d); err != nil {
		t.Fatal(err)
	}
	return d
}

// everything returns an API with every endpoint, for a caller with the role.
func everything(t *testing.T, role Role) *API {
	t.Helper()
	base, err := policy.Load([]byte(`{"rules": [{"name": "all", "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 1}}]}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lim, err := mete.New(storetest.NewModel(func() bucket.Instant { return 1_700_000_000_000_000 }), base, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := overrides.New(base, overrides.Config{Apply: lim.SetPolicy, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	top, err := topkeys.New(topkeys.Config{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	record, err := audit.New(audit.Config{
		Caller: func(*http.Request) (audit.Caller, bool) { return audit.Caller{}, true }, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	mon, err := monitor.New(monitor.NewCounts("memory"), lim.Policy)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(mon.Close)
	ratios, err := ai.NewRatios(1)
	if err != nil {
		t.Fatal(err)
	}
	api, err := New(lim, Config{
		Admin: true, Live: Live{Monitor: mon, AI: aiusage.New(ratios)}, Top: Top{Tracker: top}, Overrides: m, Reload: func(context.Context) error { return nil },
		Audit:   record,
		Role:    func(*http.Request) Role { return role },
		Gateway: Gateway{Profile: ProfileNGINX, TrustedHops: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	api.Close() // a stream would not end
	return api
}

// elsewhere are the paths that others than an API serve, beside it.
var elsewhere = []string{"/metrics"}

func TestOpenAPI_HasEveryEndpoint(t *testing.T) {
	d, api := document(t), everything(t, RoleConfigure)
	for path := range api.endpoints {
		if d.Paths[path] == nil {
			t.Errorf("%s is served, and not in openapi.json", path)
		}
	}
	for path := range d.Paths {
		pattern, _, below := strings.Cut(path, "/{")
		if _, ok := api.endpoints[pattern]; !ok && !below && !slices.Contains(elsewhere, path) {
			t.Errorf("%s is in openapi.json, and not served", path)
		}
	}
}

// The server accepts the documented methods from callers with the documented role, and responds to all others
// with 405.
func TestOpenAPI_MethodsAndRoles(t *testing.T) {
	d := document(t)
	methods := []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
	for path := range d.Paths {
		if slices.Contains(elsewhere, path) {
			continue
		}
		operations := d.operations(t, path)
		for _, method := range methods {
			o, ok := operations[method]
			if get, exists := operations["GET"]; exists && (method == "HEAD" || get.Methods == "any") {
				o, ok = get, true
			}
			if ok {
				checkRole(t, method, path, o)
			} else if w := ask(everything(t, RoleConfigure), method, path); w.Code != http.StatusMethodNotAllowed || !lists(w.Header().Get("Allow"), operations) {
				t.Errorf("%s %s: %d with Allow %q, and openapi.json has %v", method, path, w.Code, w.Header().Get("Allow"), operations)
			}
		}
	}
}

// checkRole asks with every role there is.
func checkRole(t *testing.T, method, path string, o operation) {
	t.Helper()
	need := slices.Index(roleNames[:], o.Role)
	if need < 0 {
		t.Errorf("%s %s: x-role is %q", method, path, o.Role)
	}
	for role := RoleNone; role <= RoleConfigure; role++ {
		code := ask(everything(t, role), method, path).Code
		switch {
		case int(role) >= need && (code == http.StatusUnauthorized || code == http.StatusMethodNotAllowed),
			int(role) < need && role == RoleNone && code != http.StatusUnauthorized,
			int(role) < need && role != RoleNone && code != http.StatusForbidden:
			t.Errorf("%s %s as %v: %d, and openapi.json says %s", method, path, role, code, o.Role)
		}
		if text := http.StatusText(code); o.Answers[statusKey(code)] == nil {
			t.Errorf("%s %s as %v: %d %s is not in openapi.json", method, path, role, code, text)
		}
	}
}

func statusKey(code int) string { b, _ := json.Marshal(code); return string(b) }

// ask asks as somebody with a token, whose role is the API's to know.
func ask(h http.Handler, method, path string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, strings.Replace(path, "{id}", "o1", 1), nil)
	r.Header.Set("Authorization", "Bearer t")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// lists reports whether Allow names the operations, and HEAD beside GET.
func lists(allow string, operations map[string]operation) bool {
	var want []string
	for method := range operations {
		if want = append(want, method); method == "GET" {
			want = append(want, "HEAD")
		}
	}
	got := strings.Split(allow, ", ")
	slices.Sort(got)
	slices.Sort(want)
	return slices.Equal(got, want)
}

// It is public, and not sent twice.
func TestOpenAPI_IsServed(t *testing.T) {
	for _, api := range []*API{everything(t, RoleNone), everything(t, RoleConfigure)} {
		w := ask(api, "GET", "/openapi.json")
		tag := w.Header().Get("ETag")
		if w.Code != 200 || w.Body.String() != string(openAPI) || w.Header().Get("Content-Type") != "application/json" || tag == "" {
			t.Fatalf("GET /openapi.json: %d %v, want the document", w.Code, w.Header())
		}
		for known, want := range map[string]int{tag: 304, "W/" + tag: 304, `"other", ` + tag: 304, "*": 304, `"other"`: 200, "": 200} {
			r := httptest.NewRequest("GET", "/openapi.json", nil)
			r.Header.Set("If-None-Match", known)
			w := httptest.NewRecorder()
			if api.ServeHTTP(w, r); w.Code != want || w.Code == 304 && w.Body.Len() > 0 || w.Header().Get("ETag") != tag {
				t.Errorf("with If-None-Match %s: %d, %d bytes, %v; want %d", known, w.Code, w.Body.Len(), w.Header(), want)
			}
		}
	}
}
