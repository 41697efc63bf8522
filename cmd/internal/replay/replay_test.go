// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/replay"
	"github.com/metehq/mete/cmd/internal/trace"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

func load(t testing.TB, file string) *policy.Matcher {
	t.Helper()
	m, err := policy.Load([]byte(file), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func memory(now func() bucket.Instant) (mete.Store, error) {
	return memstore.New(memstore.Config{Now: now})
}

func naive(now func() bucket.Instant) (mete.Store, error) { return storetest.NewModel(now), nil }

// replayJSON returns the lines that a replay of the trace prints.
func replayJSON(t *testing.T, m *policy.Matcher, text string, store func(func() bucket.Instant) (mete.Store, error)) []string {
	t.Helper()
	var out strings.Builder
	lines := replay.NewLines(&out)
	err := replay.Run(context.Background(), replay.Config{
		Policy: m, Trace: trace.NewReader(strings.NewReader(text), trace.FormatJSONL), Store: store, Each: lines.Write})
	if err != nil {
		t.Fatal(err)
	}
	if err := lines.Flush(); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
}

// seconds writes micros as the contract has them, by another way than ours.
func seconds(micros int64) string {
	s := fmt.Sprintf("%d.%06d", micros/1e6, micros%1e6)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// TestRun_IsTheArithmetic replays random traffic of one key, times running
// backwards now and then, and does the arithmetic by hand beside it.
func TestRun_IsTheArithmetic(t *testing.T) {
	const n = 2000
	m := load(t, `{"rules": [{"name": "r", "limit_keys": ["header:x"], "algorithm": "token_bucket",
		"algorithm_config": {"rps": 3.7, "burst": 9.5}}]}`)
	limit := m.Rules()[0].Limits[0].Bucket
	for seed := range uint64(4) {
		random := rand.New(testseed.PCG(seed, 1))
		var text strings.Builder
		var want []string
		var state bucket.State
		at, denials := bucket.Instant(random.Int64N(2_000_000_000_000_000)), 0
		for range n {
			at = max(at+bucket.Instant(random.Int64N(600_000)-60_000), 0)
			cost := bucket.Tokens(1 + random.Int64N(2500))
			if random.IntN(100) == 0 {
				cost = 9501 // can never fit
			}
			fmt.Fprintf(&text, `{"at":%s,"headers":{"X":"k"},"cost":%v}`+"\n", seconds(int64(at)), cost)
			var snap bucket.Snapshot
			state, snap = limit.Take(state, at, cost)
			reason, retry := "", seconds(snap.RetryAfter.Microseconds())
			if !snap.Allowed {
				denials++
				reason = "token_bucket_exceeded"
			}
			if snap.RetryAfter == bucket.Never {
				retry = "null"
			}
			want = append(want, fmt.Sprintf(`{"at":%s,"allowed":%t,"rule":"r","reason":%q,"remaining":%d,"retry_after":%s,"full_after":%s}`,
				seconds(int64(at)), snap.Allowed, reason, snap.Remaining().Whole(), retry, seconds(snap.FullAfter().Microseconds())))
		}
		if denials < n/20 || denials > n*19/20 {
			t.Fatalf("seed %d: %d of %d denied: the test tests nothing", seed, denials, n)
		}
		for name, store := range map[string]func(func() bucket.Instant) (mete.Store, error){"memory": memory, "naive": naive} {
			got := replayJSON(t, m, text.String(), store)
			for i := range want {
				if i >= len(got) || got[i] != want[i] {
					t.Fatalf("seed %d, %s, line %d:\n got %s\nwant %s", seed, name, i+1, got[min(i, len(got)-1)], want[i])
				}
			}
		}
	}
}

// TestRun_SeveralLimits: the fields describe the deciding bucket.
func TestRun_SeveralLimits(t *testing.T) {
	m := load(t, `{"rules": [
		{"name": "wide", "limit_keys": ["header:x"], "algorithm": "token_bucket", "algorithm_config": {"rps": 1, "burst": 2}},
		{"name": "narrow", "limit_keys": ["path"], "algorithm": "token_bucket", "algorithm_config": {"rps": 0.1, "burst": 1}},
		{"name": "strict", "limit_keys": ["header:y"], "match": {"path": "/y"}, "on_missing": "deny",
		 "algorithm": "token_bucket", "algorithm_config": {"rps": 1, "burst": 5}}]}`)
	got := replayJSON(t, m, `
		{"at":0,"path":"/a","headers":{"x":"1"}}
		{"at":0,"path":"/a","headers":{"x":"1"}}
		{"at":0,"path":"/b","headers":{"x":"1"}}
		{"at":0,"path":"/c","headers":{"x":"1"}}
		{"at":0,"path":"/d","headers":{"x":"2"},"cost":3}
		{"at":5,"method":"GET"}
		{"at":5,"path":"/y"}
		{"at":12.5,"path":"/a","headers":{"x":"1"}}`, memory)
	for i, want := range []string{
		`{"at":0,"allowed":true,"rule":"narrow","reason":"","remaining":0,"retry_after":0,"full_after":10}`,
		`{"at":0,"allowed":false,"rule":"narrow","reason":"token_bucket_exceeded","remaining":0,"retry_after":10,"full_after":10}`,
		`{"at":0,"allowed":true,"rule":"wide","reason":"","remaining":0,"retry_after":0,"full_after":2}`,
		`{"at":0,"allowed":false,"rule":"wide","reason":"token_bucket_exceeded","remaining":0,"retry_after":1,"full_after":2}`,
		`{"at":0,"allowed":false,"rule":"wide","reason":"token_bucket_exceeded","remaining":2,"retry_after":null,"full_after":0}`,
		`{"at":5,"allowed":true,"rule":"","reason":"","remaining":null,"retry_after":0,"full_after":null}`,
		`{"at":5,"allowed":false,"rule":"strict","reason":"missing_attribute","remaining":null,"retry_after":null,"full_after":null}`,
		`{"at":12.5,"allowed":true,"rule":"narrow","reason":"","remaining":0,"retry_after":0,"full_after":10}`,
	} {
		if got[i] != want {
			t.Errorf("line %d:\n got %s\nwant %s", i+1, got[i], want)
		}
		if !json.Valid([]byte(got[i])) {
			t.Errorf("line %d: %s is not JSON", i+1, got[i])
		}
	}
}

func TestRun_InvalidLines(t *testing.T) {
	m := load(t, `{"rules": [{"name": "r", "limit_keys": [], "algorithm": "token_bucket", "algorithm_config": {"rps": 1, "burst": 2}}]}`)
	const text = "{\"at\":1}\n{\"at\":x}\n{\"at\":2}\n"
	config := func(requests *int) replay.Config {
		return replay.Config{Policy: m, Trace: trace.NewReader(strings.NewReader(text), trace.FormatAuto), Store: memory,
			Each: func(*trace.Request, *mete.Decision) error { *requests++; return nil }}
	}
	requests := 0
	var bad *trace.LineError
	if err := replay.Run(context.Background(), config(&requests)); !errors.As(err, &bad) || bad.Line != 2 || requests != 1 {
		t.Errorf("got error %v after %d requests, want a LineError of line 2 after 1", err, requests)
	}
	requests = 0
	c, skipped := config(&requests), 0
	c.Invalid = func(e *trace.LineError) { skipped += e.Line }
	if err := replay.Run(context.Background(), c); err != nil || requests != 2 || skipped != 2 {
		t.Errorf("passing over them: got error %v, %d requests, skipped line %d; want nil, 2, 2", err, requests, skipped)
	}
}

// TestRun_Stops: errors of the caller and of the store end a replay, and so
// does its context. None of them is blamed on a line.
func TestRun_Stops(t *testing.T) {
	m := load(t, `{"rules": [{"name": "r", "limit_keys": [], "algorithm": "token_bucket", "algorithm_config": {"rps": 1, "burst": 2}}]}`)
	boom := errors.New("boom")
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	for name, tt := range map[string]struct {
		ctx   context.Context
		store func(func() bucket.Instant) (mete.Store, error)
		each  error
		want  error
	}{
		"each":  {context.Background(), memory, boom, boom},
		"make":  {context.Background(), func(func() bucket.Instant) (mete.Store, error) { return nil, boom }, nil, boom},
		"take":  {context.Background(), func(func() bucket.Instant) (mete.Store, error) { return failing{storetest.NewModel(nil), boom}, nil }, nil, boom},
		"ended": {canceled, memory, nil, context.Canceled},
	} {
		err := replay.Run(tt.ctx, replay.Config{Policy: m, Trace: trace.NewReader(strings.NewReader(`{"at":1}`), trace.FormatAuto), Store: tt.store,
			Each: func(*trace.Request, *mete.Decision) error { return tt.each }})
		var bad *trace.LineError
		if !errors.Is(err, tt.want) || errors.As(err, &bad) {
			t.Errorf("%s: got error %v, want %v", name, err, tt.want)
		}
	}
}

// failing is a store that cannot answer.
type failing struct {
	mete.Store
	err error
}

func (f failing) Take(_ context.Context, dst []bucket.Snapshot, _ []store.Charge, _ mete.Mode) ([]bucket.Snapshot, bool, error) {
	return dst, false, &mete.StoreError{Op: "take", Store: "test", Spent: mete.NotSpent, Err: f.err}
}

func TestProgress(t *testing.T) {
	var out strings.Builder
	now := time.Unix(0, 0)
	p := replay.NewProgress(&out, 2_000_000, func() time.Time { return now })
	for i := range int64(50_000) {
		now = now.Add(10 * time.Microsecond) // half a second in all
		p.Step(i * 20)
	}
	p.Clear()
	if n := strings.Count(out.String(), "requests"); n < 3 || n > 5 {
		t.Errorf("got %d updates in half a second, want 4 or 5:\n%q", n, out.String())
	}
	if !strings.Contains(out.String(), "\r\x1b[K10% of 2 MB, 10240 requests, 100000 per second, 1s left") || !strings.HasSuffix(out.String(), "\r\x1b[K") {
		t.Errorf("got %q", out.String())
	}
	(*replay.Progress)(nil).Step(1) // a nil Progress ignores steps
	(*replay.Progress)(nil).Clear()
}

// TestRun_StoresAgree: with many keys and times that run backwards now and
// then, every run and every store decide alike.
func TestRun_StoresAgree(t *testing.T) {
	m := load(t, `{"rules": [
		{"name": "wide", "limit_keys": ["header:x"], "algorithm": "token_bucket", "algorithm_config": {"rps": 2, "burst": 3}},
		{"name": "narrow", "limit_keys": ["path"], "algorithm": "token_bucket", "algorithm_config": {"rps": 50, "burst": 50}}]}`)
	random := rand.New(testseed.PCG(1, 2))
	var text strings.Builder
	for i := range int64(15_000) {
		at := i*1000 + random.Int64N(2_000_000) // up to two seconds late
		fmt.Fprintf(&text, `{"at":%s,"path":"/%d","headers":{"x":"%d"}}`+"\n", seconds(at), random.IntN(20), i/4+random.Int64N(400))
	}
	want, got := replayJSON(t, m, text.String(), naive), replayJSON(t, m, text.String(), memory)
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("line %d:\n got %s\nwant %s", i+1, got[i], want[i])
		}
	}
}
