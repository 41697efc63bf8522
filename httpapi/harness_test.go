// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/audit"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/overrides"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

// perKey gives each key bursts of 2 and 10 requests per second, and all keys together 1000.
const perKey = `{"rules": [
	{"name": "free", "limit_keys": ["header:x-api-key"], "algorithm": "token_bucket", "algorithm_config": {"rps": 10, "burst": 2}},
	{"name": "all", "limit_keys": [], "algorithm": "token_bucket", "algorithm_config": {"rps": 1000, "burst": 1000}}]}`

// A clock stands still until it is moved.
type clock struct{ now bucket.Instant }

func (c *clock) read() bucket.Instant    { return c.now }
func (c *clock) advance(d time.Duration) { c.now += bucket.Instant(d / time.Microsecond) }
func newClock() *clock                   { return &clock{now: 1_700_000_000_000_000} }

func limiter(t testing.TB, store mete.Store, rules string) *mete.Limiter {
	t.Helper()
	m, err := policy.Load([]byte(rules), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lim, err := mete.New(store, m, mete.Config{Local: storetest.NewModel(newClock().read)})
	if err != nil {
		t.Fatal(err)
	}
	return lim
}

// newAPI returns an API over a fresh store, and the store's clock.
func newAPI(t testing.TB, rules string, config httpapi.Config) (*httpapi.API, *clock) {
	t.Helper()
	c := newClock()
	return apiOver(t, storetest.NewModel(c.read), rules, config), c
}

func apiOver(t testing.TB, store mete.Store, rules string, config httpapi.Config) *httpapi.API {
	t.Helper()
	api, err := httpapi.New(limiter(t, store, rules), config)
	if err != nil {
		t.Fatal(err)
	}
	return api
}

func post(h http.Handler, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// denial is the verdict of an answer with status 200 that denies the request.
const denial = -1

// verdict returns the status of an answer, or denial.
func verdict(w *httptest.ResponseRecorder) int {
	if w.Code == http.StatusOK && strings.HasPrefix(w.Body.String(), `{"allowed":false,`) && w.Header().Get("Retry-After") == "" {
		return denial
	}
	return w.Code
}

// wantAnswer fails t unless the answer to body is exactly that.
func wantAnswer(t *testing.T, h http.Handler, path, body string, status int, answer string) {
	t.Helper()
	w := post(h, path, body)
	if w.Code != status || w.Body.String() != answer+"\n" {
		t.Errorf("POST %s %s\n got %d %s\nwant %d %s", path, body, w.Code, w.Body, status, answer)
	}
}

var errStore = errors.New("dial tcp 192.0.2.7:6379: connection refused")

// A brokenStore answers nothing.
type brokenStore struct{ spent store.Spending }

func (s brokenStore) err(op string) error {
	return &mete.StoreError{Op: op, Store: "broken", Spent: s.spent, Err: errStore}
}

func (s brokenStore) Take(context.Context, []bucket.Snapshot, []store.Charge, mete.Mode) ([]bucket.Snapshot, bool, error) {
	return nil, false, s.err("take")
}
func (s brokenStore) DeriveKey(context.Context, string) (key [32]byte, err error) { return }
func (s brokenStore) Refund(context.Context, []mete.Refund, string) error         { return s.err("refund") }
func (s brokenStore) Reset(context.Context, []string) error                       { return s.err("reset") }
func (s brokenStore) Ping(context.Context) error                                  { return s.err("ping") }

// auditBy returns an audit of a caller with the name kim and the address 192.0.2.1.
func auditBy(t *testing.T, log io.Writer, m *overrides.Manager, now func() bucket.Instant) *audit.Log {
	t.Helper()
	l, err := audit.New(audit.Config{
		Caller: func(*http.Request) (audit.Caller, bool) { return audit.Caller{Name: "kim", From: "192.0.2.1"}, true },
		Logger: slog.New(slog.NewTextHandler(log, nil)), Overrides: m, Now: now,
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}
