// SPDX-License-Identifier: Apache-2.0

package openapi_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/overrides"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/topkeys"
)

// A deadStore answers nothing, and keeps documents that cannot be written.
type deadStore struct{ err error }

func (s deadStore) fail(op string) error {
	return &mete.StoreError{Op: op, Store: "dead", Spent: mete.NotSpent, Err: s.err}
}

func (s deadStore) Take(context.Context, []bucket.Snapshot, []store.Charge, mete.Mode) ([]bucket.Snapshot, bool, error) {
	return nil, false, s.fail("take")
}
func (s deadStore) DeriveKey(context.Context, string) (key [32]byte, err error) {
	return key, nil
}
func (s deadStore) Refund(context.Context, []mete.Refund, string) error { return s.fail("refund") }
func (s deadStore) Reset(context.Context, []string) error               { return s.fail("reset") }
func (s deadStore) ClearFamilies(context.Context, []string, string) (int64, string, error) {
	return 0, "", s.fail("clear families")
}
func (s deadStore) Ping(context.Context) error { return s.fail("ping") }

// An oldDocument is always changed by somebody else in between.
type oldDocument struct{}

func (oldDocument) Document(context.Context, string, int64) ([]byte, int64, error) {
	return nil, 0, nil
}
func (oldDocument) SetDocument(context.Context, string, []byte, int64) (int64, error) {
	return 0, store.ErrRevision
}

// closedRules are closed where the store does not answer.
const closedRules = `{"rules": [{"name": "shut", "match": {"path": "/shut"}, "limit_keys": [], "on_store_error": "closed", "algorithm_config": {"rps": 1, "burst": 1}},
	{"name": "open", "match": {"path": "/open"}, "limit_keys": [], "algorithm_config": {"rps": 1, "burst": 1}}]}`

// An outage is a server in this process with a dead store. All clients have all roles.
type outage struct {
	*service
	reloading error // the result of a reload
	unready   error // of /readyz at the admin address
}

func newOutage(t *testing.T, seen map[string]bool) *outage {
	t.Helper()
	base, err := policy.Load([]byte(closedRules), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	lim, err := mete.New(deadStore{errors.New("no route to host")}, base, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := overrides.New(base, overrides.Config{Documents: oldDocument{}, Apply: lim.SetPolicy, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	top, err := topkeys.New(topkeys.Config{}, bucket.At(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	main, err := httpapi.New(lim, httpapi.Config{}) // no gateway
	if err != nil {
		t.Fatal(err)
	}
	o := &outage{unready: errors.New("the store does not answer")}
	admin, err := httpapi.New(lim, httpapi.Config{
		Admin: true, Overrides: m, Top: httpapi.Top{Tracker: top}, Reload: func(context.Context) error { return o.reloading },
		Ready:   func(context.Context) error { return o.unready },
		Gateway: httpapi.Gateway{Profile: httpapi.ProfileNGINX, TrustedHops: 1}, Live: httpapi.Live{Violations: oneViolation{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	url := func(h http.Handler) string {
		s := httptest.NewServer(h)
		t.Cleanup(s.Close)
		return s.URL
	}
	o.service = describe(t, url(main), url(admin))
	o.seen = seen
	return o
}

// oneViolation is a record with one row.
type oneViolation struct{}

func (oneViolation) List(context.Context, httpapi.ViolationFilter) ([]api.Violation, error) {
	key, tokens := "free:ip=192.0.2.1", 0.5
	return []api.Violation{{ID: 1, Rule: "free", Limit: "free", Reason: "token_bucket_exceeded", Denials: 2, Key: &key, Tokens: &tokens, Cost: 2}}, nil
}

func (oneViolation) Histogram(context.Context, httpapi.ViolationFilter) (api.ViolationHistogram, error) {
	return api.ViolationHistogram{Start: 60, Step: 60, Bins: 2, Series: []api.ViolationSeries{{Rule: "free", Denied: []int64{1, 0}, Shadow: []int64{0, 0}}}, Rules: 1, Rows: 1}, nil
}

// askAll asks what a dead store cannot answer.
func (o *outage) askAll(t *testing.T) {
	t.Helper()
	for _, r := range []row{
		{method: "POST", target: "/v1/take", body: `{"attributes":{"path":"/shut"}}`, status: 200}, // denied
		{method: "POST", target: "/v1/peek", body: `{"attributes":{"path":"/shut"}}`, status: 200},
		{method: "POST", target: "/v1/take?status=429", body: `{"attributes":{"path":"/shut"}}`, status: 503},
		{method: "POST", target: "/v1/peek?status=429", body: `{"attributes":{"path":"/shut"}}`, status: 503},
		{method: "POST", target: "/v1/take", body: `{"attributes":{"path":"/open"}}`, status: 200}, // degraded
		{method: "POST", target: "/v1/take", body: `{"requests":[{"attributes":{"path":"/shut"}},{"attributes":{}}]}`, status: 200},
		{method: "POST", target: "/v1/refund", body: `{"requests":[{"attributes":{"path":"/shut"}},{"attributes":{}}]}`, status: 200},
		{method: "POST", target: "/v1/refund", body: `{"attributes":{"path":"/open"}}`, status: 503},
		{method: "POST", target: "/v1/reset", body: `{"attributes":{"path":"/open"}}`, status: 503},
		{method: "POST", target: "/v1/explain", body: `{"attributes":{"path":"/shut"}}`, status: 200},
		{method: "GET", target: "/v1/bucket?key=shut:", status: 503},
		{method: "POST", target: "/v1/bucket/reset", body: `{"key":"shut:","reason":"r"}`, status: 503},
		{method: "POST", target: "/v1/bucket/take", body: `{"key":"shut:","tokens":1}`, status: 503},
		{method: "POST", target: "/v1/rules/reset", body: `{"rule":"shut","reason":"r"}`, status: 503},
		{method: "GET", target: "/v1/decision", status: 403, fields: asGateway("/shut")}, // the profile nginx: 503
		{method: "GET", target: "/v1/decision", status: 200, fields: asGateway("/open")},
		{method: "PUT", target: "/v1/overrides", body: `{"action":"block","match":{"path":"/x"},` + until + `}`, status: 409},
		{method: "GET", target: "/v1/violations?rule=free&limit=7", status: 200},
		{method: "GET", target: "/v1/violations?mode=both", status: 400},
		{method: "GET", target: "/v1/violations.csv?rule=free", status: 200},
		{method: "GET", target: "/v1/violations.csv?limit=7", status: 400},
		{method: "GET", target: "/v1/violations/histogram?mode=shadow", status: 200},
		{method: "GET", target: "/v1/violations/histogram?from=x", status: 400},
		{method: "GET", target: "/readyz", status: 503},
		{method: "GET", target: "/livez", status: 200},
	} {
		r.where = "admin"
		o.askRow(t, r)
	}
	o.askRow(t, row{where: "main", method: "GET", target: "/v1/decision", status: 404, fields: asGateway("/open")})
	o.reloading = errors.New("policy.yaml:1: not a policy")
	o.askRow(t, row{where: "admin", method: "POST", target: "/v1/reload", status: 422})
	o.reloading = context.DeadlineExceeded
	o.askRow(t, row{where: "admin", method: "POST", target: "/v1/reload", status: 503})
	o.unready = errors.New("the server is stopping")
	o.askRow(t, row{where: "admin", method: "GET", target: "/readyz", status: 503})
}
