// SPDX-License-Identifier: Apache-2.0

package loadtest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/internal/loadtest"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// run makes 2000 decisions.
func run(t *testing.T, o loadtest.Options) (loadtest.Report, string) {
	t.Helper()
	var notes bytes.Buffer
	o.Notes = &notes
	if o.Count == 0 {
		o.Count = 2000
	}
	r, err := loadtest.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	check(t, r)
	return r, notes.String()
}

// check checks that the figures agree with each other.
func check(t *testing.T, r loadtest.Report) {
	t.Helper()
	var counted int64
	for _, b := range r.Histogram {
		counted += b.Count
	}
	l := r.Latency
	if counted != r.Decisions || r.Allowed+r.Denied != r.Decisions || l.Min > l.P50 || l.P50 > l.P90 || l.P90 > l.P99 || l.P99 > l.P999 || l.P999 > l.Max {
		t.Errorf("the figures do not agree: %+v", r)
	}
	if r.Decisions > 0 && (r.PerSecond <= 0 || r.Seconds <= 0 || l.Min <= 0 || l.Mean <= 0) {
		t.Errorf("a figure is missing: %+v", r)
	}
}

func TestRun_Memory(t *testing.T) {
	r, notes := run(t, loadtest.Options{Target: "memory:"})
	if r.Decisions != 2000 || r.Denied != 0 || len(r.Errors) != 0 || r.Concurrency != 64 || r.Keys != 10_000 {
		t.Errorf("%+v", r)
	}
	if !strings.Contains(notes, "for 2000 decisions; the store is in the memory of this process") {
		t.Error(notes)
	}
	// The first decision, which is not counted, spends, too.
	r, _ = run(t, loadtest.Options{Target: "memory:?max_keys=10", Keys: 1, Limit: "5/1h"})
	if r.Allowed != 4 || r.Denied != 1996 {
		t.Errorf("%+v", r)
	}
}

// Nothing is left in the store, and the keys of others stay.
func TestRun_Redis(t *testing.T) {
	redis := proctest.StartRedis(t)
	url := "redis://" + redis.Addr + "?prefix=others:"
	if _, err := redis.Do("SET", "others:tb:key", "theirs"); err != nil {
		t.Fatal(err)
	}
	r, notes := run(t, loadtest.Options{Target: url, Keys: 300, Concurrency: 16})
	if r.Decisions != 2000 || r.Allowed != 2000 || len(r.Errors) != 0 {
		t.Errorf("%+v", r)
	}
	if !strings.Contains(notes, "this puts load on the store for all its users; the keys of this run have a unique prefix") {
		t.Error(notes)
	}
	if keys, err := redis.Do("DBSIZE"); err != nil || !strings.HasSuffix(keys, "1") {
		t.Errorf("%q keys are left, %v", keys, err)
	}
}

func TestRun_Postgres(t *testing.T) {
	url := proctest.StartPostgres(t).URL()
	r, notes := run(t, loadtest.Options{Target: url, Keys: 300, Concurrency: 16})
	if r.Decisions != 2000 || r.Allowed != 2000 || len(r.Errors) != 0 || !strings.Contains(notes, "keys of this run have a unique prefix") {
		t.Errorf("%+v\n%s", r, notes)
	}
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	var left int
	if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM mete.bucket").Scan(&left); err != nil || left != 0 {
		t.Errorf("%d rows are left, %v", left, err)
	}
}

// newServer is a server whose policy gives each key 3 tokens.
func newServer(t *testing.T) *httptest.Server {
	t.Helper()
	m, err := policy.Load([]byte(`{"rules": [{"name": "r", "limit_keys": ["header:x-api-key"], "algorithm_config": {"rate": "1/1h", "burst": 3}}]}`), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := mete.New(s, m, mete.Config{})
	if err != nil {
		t.Fatal(err)
	}
	api, err := httpapi.New(l, httpapi.Config{})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	return server
}

func TestRun_Server(t *testing.T) {
	s := newServer(t)
	r, notes := run(t, loadtest.Options{Target: s.URL, Keys: 10, Count: 500, Concurrency: 8})
	if r.Allowed != 29 || r.Denied != 471 || len(r.Errors) != 0 {
		t.Errorf("%+v", r)
	}
	if !strings.Contains(notes, "clients have addresses in 198.18.0.0/15 and API keys that begin with bench-") {
		t.Error(notes)
	}
	r, notes = run(t, loadtest.Options{Target: s.URL, Keys: 10, Count: 50, Attributes: map[string]string{"header:x-api-key": "mine"}})
	if r.Allowed != 2 || r.Denied != 48 || !strings.Contains(notes, "spends tokens of the clients header:x-api-key=mine") {
		t.Errorf("%+v\n%s", r, notes)
	}
}

// Errors are counted by kind, with an example.
func TestRun_ErrorsByKind(t *testing.T) {
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch n := asked.Add(1); {
		case n == 1 || n%4 == 0:
			w.Header().Set("Content-Type", "application/json")
			w.Write([]byte(`{"allowed": true}`))
		case n%4 == 1:
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	defer s.Close()
	r, _ := run(t, loadtest.Options{Target: s.URL, Count: 399, Concurrency: 1})
	if len(r.Errors) != 2 || r.Errors[0].Count != 200 || r.Errors[1].Count != 99 || r.Decisions != 100 {
		t.Fatalf("%+v", r)
	}
	for i, want := range []string{"403", "503"} {
		if !strings.Contains(r.Errors[i].Kind, want) || r.Errors[i].Example == "" {
			t.Errorf("%+v", r.Errors[i])
		}
	}
	var text bytes.Buffer
	if err := r.WriteText(&text); err != nil || !strings.Contains(text.String(), "errors     200 garbled 403, for example: ") {
		t.Errorf("%v\n%s", err, text.String())
	}
}

func TestRun_Interrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 100 {
			interrupt()
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{"allowed": true}`))
	}))
	defer s.Close()
	r, err := loadtest.Run(ctx, loadtest.Options{Target: s.URL, Concurrency: 4})
	if err != nil || r.Decisions < 99 || len(r.Errors) > 0 {
		t.Errorf("%v: %+v", err, r)
	}
	check(t, r)
}

func TestRun_Errors(t *testing.T) {
	free := proctest.FreeAddr(t)
	for _, tt := range []struct {
		o    loadtest.Options
		want string
	}{
		{loadtest.Options{Target: "floppy:"}, "unknown kind of store"},
		{loadtest.Options{Target: "http://"}, "client"},
		{loadtest.Options{Target: "http://u:secret@" + free}, "refused"},
		{loadtest.Options{Target: "redis://" + free}, "redisstore"},
		{loadtest.Options{Target: "postgres://" + free}, "pgstore"},
		{loadtest.Options{Target: "http://" + free}, "refused"},
		{loadtest.Options{Target: "memory:", Limit: "5"}, "limit: "},
		{loadtest.Options{Target: "memory:", Concurrency: -1, Keys: 1e9, Rate: -1, Duration: -1, Count: -1}, "concurrency: -1 must be between 1 and 1024\nkeys: 1000000000 must be between 1 and 1000000\nrate: -1 must be above 0"},
		{loadtest.Options{Target: "http://" + free, Attributes: map[string]string{"ip:": ""}}, "attribute: "},
	} {
		_, err := loadtest.Run(t.Context(), tt.o)
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: %v, want %q", tt.o, err, tt.want)
		}
	}
	if _, err := loadtest.Run(t.Context(), loadtest.Options{Target: "redis://" + free}); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("%v does not wrap ErrUnavailable", err)
	}
}

func TestReport_Formats(t *testing.T) {
	r, _ := run(t, loadtest.Options{Target: "memory:", Rate: 100_000, Count: 300})
	var text, encoded bytes.Buffer
	if err := errors.Join(r.WriteText(&text), r.WriteJSON(&encoded)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"target     memory:, 64 calls at a time, 10000 keys, 100000 due per second\n", "decisions  300 in ", "allowed    300, 100.00%\n", "latency    p50 ", ", p99.9 ", "█"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the text lacks %q:\n%s", want, text.String())
		}
	}
	var back loadtest.Report
	if err := json.Unmarshal(encoded.Bytes(), &back); err != nil || back.Decisions != 300 || back.Latency != r.Latency {
		t.Errorf("%v: %s", err, encoded.Bytes())
	}
}

func TestRun_RedisCluster(t *testing.T) {
	c := proctest.StartCluster(t, 3, 0)
	r, _ := run(t, loadtest.Options{Target: "redis+cluster://" + strings.Join(c.Addrs, ","), Keys: 300, Concurrency: 16})
	if r.Decisions != 2000 || r.Allowed != 2000 || len(r.Errors) != 0 {
		t.Errorf("%+v", r)
	}
}
