// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/overrides"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// withOverrides is an API of administrators, whose overrides are in documents.
func withOverrides(t *testing.T, rules string, documents store.Documents, role func(*http.Request) httpapi.Role) *httpapi.API {
	t.Helper()
	c := newClock()
	base, err := policy.Load([]byte(rules), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lim, err := mete.New(storetest.NewModel(c.read), base, mete.Config{Now: c.read})
	if err != nil {
		t.Fatal(err)
	}
	m, err := overrides.New(base, overrides.Config{
		Documents: documents, Apply: lim.SetPolicy, Logger: slog.New(slog.DiscardHandler),
		Now: func() bucket.Instant { return bucket.At(time.UnixMicro(int64(c.now)).UTC()) },
	})
	if err != nil {
		t.Fatal(err)
	}
	h, err := httpapi.New(lim, httpapi.Config{Admin: true, Overrides: m, Role: role})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func do(h http.Handler, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// blockK1 blocks k1 from 2023-11-14T22:13:20Z, which is now, for a minute.
const blockK1 = `{"id":"b1","action":"block","match":{"header:x-api-key":"k1"},"reason":"scrapes","author":"kim","expires_at":"2023-11-14T22:14:20Z"}`

func TestOverrides(t *testing.T) {
	h := withOverrides(t, perKey, nil, nil)
	const made = `{"id":"b1","action":"block","match":{"header:x-api-key":"k1"},"reason":"scrapes","author":"kim",` +
		`"created_at":"2023-11-14T22:13:20Z","expires_at":"2023-11-14T22:14:20Z","state":"in_force","source":"admin"}`
	if w := do(h, "PUT", "/v1/overrides", blockK1); w.Code != 200 || w.Body.String() != made+"\n" {
		t.Errorf("PUT: %d %s, want 200 %s", w.Code, w.Body, made)
	}
	wantAnswer(t, h, "/v1/take", `{"attributes":{"header:x-api-key":"k1"}}`, 200,
		`{"allowed":false,"rule":"","reason":"blocked","retry_after":60,"degraded":false,"override":"b1","limits":[]}`)
	if w := post(h, "/v1/take?status=429", `{"attributes":{"header:x-api-key":"k1"}}`); w.Code != 429 || w.Header().Get("Retry-After") != "60" || !slices.Equal(w.Header().Values("X-RateLimit-Reason"), []string{"blocked"}) {
		t.Errorf("headers of a block: %v, want Retry-After 60 and the reason", w.Header())
	}
	limit := `{"id":"l","action":"limit","rules":["free"],"match":{"header:x-api-key":"k2"},"algorithm":"token_bucket","algorithm_config":{"rps":10,"burst":9},` +
		`"reason":"r","author":"kim","expires_at":"2023-11-14T22:14:20Z"}`
	if w := do(h, "PUT", "/v1/overrides", limit, "Content-Type", "application/json"); w.Code != 200 {
		t.Errorf("PUT of a limit: %d %s", w.Code, w.Body)
	}
	wantAnswer(t, h, "/v1/peek", `{"attributes":{"header:x-api-key":"k2"}}`, 200,
		`{"allowed":true,"rule":"free","reason":"","retry_after":0,"degraded":false,"limits":[`+
			`{"rule":"free","limit":"free","remaining":9,"retry_after":0,"full_after":0,"override":"l"},`+
			`{"rule":"all","limit":"all","remaining":1000,"retry_after":0,"full_after":0}]}`)
	if w := do(h, "DELETE", "/v1/overrides/b1?author=lee&reason=a%20mistake", ""); w.Code != 200 || w.Body.String() != "{}\n" {
		t.Errorf("DELETE: %d %s", w.Code, w.Body)
	}
	wantAnswer(t, h, "/v1/peek", `{"attributes":{"header:x-api-key":"k1"}}`, 200,
		`{"allowed":true,"rule":"free","reason":"","retry_after":0,"degraded":false,"limits":[`+
			`{"rule":"free","limit":"free","remaining":2,"retry_after":0,"full_after":0},`+
			`{"rule":"all","limit":"all","remaining":1000,"retry_after":0,"full_after":0}]}`)

	var list api.Overrides
	w := do(h, "GET", "/v1/overrides?audit=2", "")
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || w.Code != 200 || w.Header().Get("Cache-Control") != "no-store" {
		t.Fatalf("GET: %d %s, %v", w.Code, w.Body, err)
	}
	if len(list.Overrides) != 1 || list.Overrides[0].ID != "l" || len(list.Audit) != 2 || list.Audit[1].Reason != "a mistake" || list.Audit[1].Author != "lee" {
		t.Errorf("GET: %+v, want the limit, and the last two entries", list)
	}
}

func TestOverrides_BadInput(t *testing.T) {
	rules := `{"overrides": [` + strings.Replace(blockK1, "b1", "filed", 1) + `], ` + perKey[1:]
	h := withOverrides(t, rules, nil, nil)
	with := func(old, new string) string { return strings.Replace(blockK1, old, new, 1) }
	for _, tt := range []struct {
		method, path, body string
		status             int
		want               []string
	}{
		{"PUT", "/v1/overrides", "", 400, []string{"not JSON"}},
		{"PUT", "/v1/overrides", blockK1 + "{}", 400, []string{"not JSON"}},
		{"PUT", "/v1/overrides", "[]", 422, []string{"must be an object"}},
		{"PUT", "/v1/overrides", strings.Repeat(" ", 1<<16) + blockK1, 413, []string{"longer"}},
		{"PUT", "/v1/overrides", "{}", 422, []string{"mistakes", `"pointer":"/action"`, `"pointer":"/expires_at"`, `"pointer":"/reason"`}},
		{"PUT", "/v1/overrides", with(`"reason"`, `"raeson"`), 422, []string{`unknown field \"raeson\"`, `"hint":"did you mean \"reason\"?"`}},
		{"PUT", "/v1/overrides", with(`"id":"b1"`, `"id":"b1","id":"b2"`), 422, []string{"given twice"}},
		{"PUT", "/v1/overrides", with(`"b1"`, `1`), 422, []string{`"pointer":"/id"`, "must be text"}},
		{"PUT", "/v1/overrides", with(`"b1"`, `"filed"`), 422, []string{`"pointer":"/id"`, "already used"}},
		{"PUT", "/v1/overrides", with(`2023-11-14T22:14:20Z`, `2023-11-14T22:13:20Z`), 422, []string{"must be in the future"}},
		{"PUT", "/v1/overrides", with(`2023-11-14T22:14:20Z`, `tomorrow`), 422, []string{"must be a timestamp"}},
		{"PUT", "/v1/overrides", with(`"block"`, `"blok"`), 422, []string{`"pointer":"/action"`}},
		{"PUT", "/v1/overrides", with(`header:x-api-key`, `heder:x-api-key`), 422, []string{`"pointer":"/match/heder:x-api-key"`}},
		{"PUT", "/v1/overrides", with(`"k1"`, `"\ud800"`), 400, []string{"unpaired surrogate"}},
		{"PUT", "/v1/overrides?x=1", blockK1, 400, []string{"unknown parameter"}},
		{"POST", "/v1/overrides", blockK1, 405, []string{"GET, HEAD, PUT"}},
		{"GET", "/v1/overrides?audit=x", "", 400, []string{"send a number"}},
		{"GET", "/v1/overrides?audit=-1", "", 400, []string{"send a number"}},
		{"GET", "/v1/overrides?audit=1&audit=2", "", 400, []string{"duplicate"}},
		{"GET", "/v1/overrides?%zz", "", 400, []string{"cannot be parsed"}},
		{"GET", "/v1/overrides/b1", "", 405, []string{"DELETE"}},
		{"DELETE", "/v1/overrides", "", 405, []string{"GET, HEAD, PUT"}},
		{"DELETE", "/v1/overrides/none?author=a&reason=r", "", 404, []string{"no such override"}},
		{"DELETE", "/v1/overrides/?author=a&reason=r", "", 404, []string{"no such override"}},
		{"DELETE", "/v1/overrides/filed?author=a&reason=r", "", 409, []string{"policy file"}},
		{"DELETE", "/v1/overrides/filed", "", 422, []string{`"pointer":"/author"`, `"pointer":"/reason"`}},
		{"DELETE", "/v1/overrides/filed?author=a&raeson=r", "", 400, []string{"unknown parameter"}},
	} {
		w := do(h, tt.method, tt.path, tt.body)
		ok := w.Code == tt.status && w.Header().Get("Content-Type") == "application/problem+json"
		for _, text := range tt.want {
			ok = ok && strings.Contains(w.Body.String(), text)
		}
		if !ok {
			t.Errorf("%s %s %.60s: %d %s, want %d with %q", tt.method, tt.path, tt.body, w.Code, w.Body, tt.status, tt.want)
		}
	}
	if w := do(h, "GET", "/v1/overrides", ""); strings.Contains(w.Body.String(), `"b1"`) {
		t.Errorf("after mistakes: %s, want what there was", w.Body)
	}
}

// Requests from web pages of other origins are rejected.
func TestOverrides_RejectsOtherOrigins(t *testing.T) {
	h := withOverrides(t, perKey, nil, nil)
	for _, tt := range []struct{ method, path, body string }{
		{"PUT", "/v1/overrides", blockK1}, {"DELETE", "/v1/overrides/b1?author=a&reason=r", ""},
	} {
		if w := do(h, tt.method, tt.path, tt.body, "Sec-Fetch-Site", "cross-site"); w.Code != 403 {
			t.Errorf("%s from another origin: %d %s, want 403", tt.method, w.Code, w.Body)
		}
	}
	if w := do(h, "PUT", "/v1/overrides", blockK1, "Content-Type", "text/plain"); w.Code != 415 {
		t.Errorf("PUT of a text: %d, want 415", w.Code)
	}
}

// A failing store has no document, and cannot write one.
type failing struct{ err error }

func (failing) Document(context.Context, string, int64) ([]byte, int64, error) { return nil, 0, nil }
func (f failing) SetDocument(context.Context, string, []byte, int64) (int64, error) {
	return 0, f.err
}

func TestOverrides_StoreFails(t *testing.T) {
	for err, want := range map[error]int{store.ErrRevision: 409, errors.New("dial tcp 192.0.2.7: refused"): 503} {
		h := withOverrides(t, perKey, failing{err}, nil)
		w := do(h, "PUT", "/v1/overrides", blockK1)
		if w.Code != want || strings.Contains(w.Body.String(), "192.0.2.7") {
			t.Errorf("%v: %d %s, want %d and no host", err, w.Code, w.Body, want)
		}
	}
}

func TestOverrides_NotServed(t *testing.T) {
	h, _ := newAPI(t, perKey, httpapi.Config{Admin: true})
	if w := do(h, "GET", "/v1/overrides", ""); w.Code != 404 || !strings.Contains(w.Body.String(), "admin address") {
		t.Errorf("without a manager: %d %s, want 404", w.Code, w.Body)
	}
	lim := limiter(t, storetest.NewModel(newClock().read), perKey)
	m, err := overrides.New(lim.Policy(), overrides.Config{Apply: lim.SetPolicy})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := httpapi.New(lim, httpapi.Config{Overrides: m}); err == nil {
		t.Error("overrides are served without Admin")
	}
}

// Ending an override takes the role that making it takes. That holds for every way to end it,
// and for an override that another server has just made.
func TestOverrides_RoleToEnd(t *testing.T) {
	shared := new(oneDocument)
	role := httpapi.RoleConfigure
	apis := [2]*httpapi.API{}
	for i := range apis {
		apis[i] = withOverrides(t, perKey, shared, func(*http.Request) httpapi.Role { return role })
	}
	const made = `{"id":"x","action":"break_glass","reason":"r","author":"kim","expires_at":"2023-11-14T22:14:20Z"}`
	taken := strings.Replace(blockK1, "b1", "x", 1)
	if w := do(apis[0], "PUT", "/v1/overrides", made); w.Code != 200 {
		t.Fatalf("PUT: %d %s", w.Code, w.Body)
	}
	role = httpapi.RoleOperate
	for i, h := range apis {
		if w := do(h, "PUT", "/v1/overrides", taken, "Authorization", "Bearer x"); w.Code != 403 || !strings.Contains(w.Body.String(), "role configure is required") {
			t.Errorf("server %d: PUT in its place: %d %s, want 403", i, w.Code, w.Body)
		}
		if w := do(h, "DELETE", "/v1/overrides/x?author=a&reason=r", "", "Authorization", "Bearer x"); w.Code != 403 {
			t.Errorf("server %d: DELETE: %d %s, want 403", i, w.Code, w.Body)
		}
	}
	role = httpapi.RoleConfigure
	if w := do(apis[1], "PUT", "/v1/overrides", taken); w.Code != 200 {
		t.Errorf("PUT in its place by who may: %d %s, want 200", w.Code, w.Body)
	}
	role = httpapi.RoleOperate
	if w := do(apis[0], "DELETE", "/v1/overrides/x?author=a&reason=r", ""); w.Code != 200 {
		t.Errorf("DELETE of a block: %d %s, want 200", w.Code, w.Body)
	}
}

// oneDocument is a store that several servers share.
type oneDocument struct {
	data     []byte
	revision int64
}

func (d *oneDocument) Document(_ context.Context, _ string, since int64) ([]byte, int64, error) {
	if since == d.revision {
		return nil, d.revision, nil
	}
	return d.data, d.revision, nil
}

func (d *oneDocument) SetDocument(_ context.Context, _ string, data []byte, revision int64) (int64, error) {
	if revision != d.revision {
		return 0, store.ErrRevision
	}
	d.data, d.revision = data, revision+1
	return d.revision, nil
}
