// SPDX-License-Identifier: Apache-2.0

package dashboard_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/dashboard"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

const watched = `{"rules": [
	{"name": "free", "group": "1", "limit_keys": ["header:x-user"], "algorithm_config": {"rps": 10, "burst": 20}},
	{"name": "trial", "group": "2", "mode": "shadow", "limit_keys": ["header:x-user"], "algorithm_config": {"rps": 1, "burst": 1}},
	{"name": "queue", "group": "3", "limit_keys": ["path"], "algorithm": "leaky_bucket", "algorithm_config": {"rps": 2, "queue": 3}}]}`

// An unreliable store does not answer while it is down.
type unreliable struct {
	mete.Store
	down atomic.Bool
}

func (s *unreliable) Unwrap() mete.Store { return s.Store }

func (s *unreliable) Take(ctx context.Context, dst []bucket.Snapshot, charges []store.Charge, mode mete.Mode) ([]bucket.Snapshot, bool, error) {
	if s.down.Load() {
		return dst, false, errors.New("dial tcp 192.0.2.7:6379: connection refused")
	}
	return s.Store.Take(ctx, dst, charges, mode)
}

// newWatched returns a limiter over a store that can fail, and its watches.
func newWatched(t *testing.T) (*mete.Limiter, *dashboard.Watches, *unreliable) {
	t.Helper()
	inner, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := policy.Load([]byte(watched), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	store := &unreliable{Store: inner}
	watches := new(dashboard.Watches)
	lim, err := mete.New(store, m, mete.Config{OnDecision: watches.Decided})
	if err != nil {
		t.Fatal(err)
	}
	return lim, watches, store
}

func take(t *testing.T, lim *mete.Limiter, attrs mete.Attrs) {
	t.Helper()
	if _, err := lim.Take(t.Context(), mete.Request{Attributes: attrs}); err != nil {
		t.Fatal(err)
	}
}

// A level is an event of a bucket.
type level struct {
	At                                  float64
	Known, Shadow                       bool
	Rule, Limit, Algorithm, Words, Mode string
	Capacity, Remaining, Owed, Queue    float64
	Refill, Anchor                      string
	Rate                                struct{ Tokens, Per float64 }
	Cost                                float64
	RetryAfter                          *float64 `json:"retry_after"`
	FullAfter                           *float64 `json:"full_after"`
	Override                            string
	BlockedBy                           string `json:"blocked_by"`
	AllowedBy                           string `json:"allowed_by"`
}

// into reads the data of an event of that name.
func (e event) into(t *testing.T, name string, x any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(e.data)))
	d.DisallowUnknownFields()
	if err := d.Decode(x); e.name != name || err != nil {
		t.Fatalf("got the event %q with %s (%v), want %s", e.name, e.data, err, name)
	}
}

// A list is an event of decisions.
type list struct {
	List    [][]*float64
	Dropped int
}

func watchPath(key string) string { return "/data/watch?key=" + url.QueryEscape(key) }

// The level is told at once and each half a second, and decisions soon after they were
// made, with what is left.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim, watches, _ := newWatched(t)
		h := newBoard(t, dashboard.Config{Limiter: lim, Watches: watches})
		time.Sleep(50 * time.Millisecond) // the bubble's: between two ticks
		begin := time.Now()
		events, leave := follow(t, h, watchPath("free:x-user=alice"))
		defer leave()
		var l level
		next := func() event { t.Helper(); e, _ := read(t, events); return e }
		next().into(t, "bucket", &l)
		if !l.Known || l.Rule != "free" || l.Limit != "free" || l.Algorithm != "token_bucket" || l.Capacity != 20 || l.Remaining != 20 || l.Rate.Tokens != 10 || l.Rate.Per != 1 ||
			l.Cost != 1 || *l.RetryAfter != 0 || *l.FullAfter != 0 || l.Mode != "enforce" || l.At != float64(begin.UnixMicro())/1e6 {
			t.Errorf("%+v", l)
		}
		for range 3 {
			take(t, lim, mete.Attrs{"header:x-user": "alice"})
			take(t, lim, mete.Attrs{"header:x-user": "bob"})
		}
		var d list
		next().into(t, "decisions", &d)
		if passed := time.Since(begin); passed != 200*time.Millisecond {
			t.Errorf("decisions are told after %v", passed)
		}
		if len(d.List) != 3 || d.Dropped != 0 {
			t.Fatalf("%+v", d)
		}
		for i, one := range d.List {
			if *one[0] != l.At || *one[1] != 1 || *one[2] != 1 || *one[3] != float64(19-i) || *one[4] != 0 || *one[5] != 0 || *one[6] != 0 || *one[7] != 0 {
				t.Errorf("decision %d: %v %v %v %v", i, *one[0], *one[1], *one[2], *one[3])
			}
		}
		next().into(t, "bucket", &l)
		if passed := time.Since(begin); passed != 500*time.Millisecond || l.Remaining != 20 {
			t.Errorf("%v left after %v", l.Remaining, passed)
		}
		if _, taken, err := lim.TakeBucket(t.Context(), "free:x-user=alice", 12.345); err != nil || taken != 12345 { // as another server does
			t.Fatal(taken, err)
		}
		next().into(t, "bucket", &l)
		if l.Remaining != 12.655 || time.Since(begin) != time.Second {
			t.Errorf("%+v after %v", l, time.Since(begin))
		}
	})
}

// A limit in shadow says what it would have done; a queue lets wait.
func TestWatch_ShadowAndQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim, watches, _ := newWatched(t)
		h := newBoard(t, dashboard.Config{Limiter: lim, Watches: watches})
		for _, tt := range []struct {
			key  string
			want [][3]float64 // allowed, wait, shadow
		}{
			{"trial:x-user=alice", [][3]float64{{1, 0, 1}, {0, 0.5, 1}}},
			{"queue:path=/a", [][3]float64{{1, 0, 0}, {1, 0.5, 0}}},
		} {
			time.Sleep(time.Minute)
			events, leave := follow(t, h, watchPath(tt.key))
			read(t, events)
			for range 2 {
				take(t, lim, mete.Attrs{"header:x-user": "alice", "path": "/a"})
			}
			var d list
			e, _ := read(t, events)
			e.into(t, "decisions", &d)
			for i, one := range d.List {
				if *one[1] != tt.want[i][0] || *one[5] != tt.want[i][1] || *one[6] != tt.want[i][2] {
					t.Errorf("%s %d: allowed %v, waits %v, in shadow %v; want %v", tt.key, i, *one[1], *one[5], *one[6], tt.want[i])
				}
			}
			leave()
		}
	})
}

// A flood is counted and not sent.
func TestWatch_Drops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim, watches, _ := newWatched(t)
		events, leave := follow(t, newBoard(t, dashboard.Config{Limiter: lim, Watches: watches}), watchPath("free:x-user=alice"))
		defer leave()
		read(t, events)
		for range 1200 {
			take(t, lim, mete.Attrs{"header:x-user": "alice"})
		}
		var d list
		e, _ := read(t, events)
		if e.into(t, "decisions", &d); len(d.List) != 500 || d.Dropped != 700 {
			t.Errorf("%d told, and %d dropped", len(d.List), d.Dropped)
		}
	})
}

// While the store does not answer, or the rule is gone, the viewer is told so, without
// what the store said.
func TestWatch_Trouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim, watches, store := newWatched(t)
		store.down.Store(true)
		events, leave := follow(t, newBoard(t, dashboard.Config{Limiter: lim, Watches: watches}), watchPath("free:x-user=alice"))
		defer leave()
		e, _ := read(t, events)
		if e.name != "trouble" || !strings.Contains(string(e.data), "store does not answer") || strings.Contains(string(e.data), "192.0.2.7") {
			t.Errorf("%s %s", e.name, e.data)
		}
		store.down.Store(false)
		var l level
		e, _ = read(t, events)
		e.into(t, "bucket", &l)
		other, err := policy.Load([]byte(rules), policy.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := lim.SetPolicy(other); err != nil {
			t.Fatal(err)
		}
		if e, _ = read(t, events); e.name != "trouble" || !strings.Contains(string(e.data), "no bucket has this key") {
			t.Errorf("without the rule: %s %s", e.name, e.data)
		}
	})
}

// A key is watched with its tag, also where the store does not answer at first.
func TestWatch_Tag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim, watches, store := newWatched(t)
		tagged, err := policy.Load([]byte(`{"rules": [{"name": "free", "limit_keys": ["header:x-user"], "slot_by": "header:x-user", "algorithm_config": {"rps": 10, "burst": 20}}]}`), policy.Options{})
		if err == nil {
			err = lim.SetPolicy(tagged)
		}
		if err != nil {
			t.Fatal(err)
		}
		store.down.Store(true)
		events, leave := follow(t, newBoard(t, dashboard.Config{Limiter: lim, Watches: watches}), watchPath("free:x-user=alice"))
		defer leave()
		if e, _ := read(t, events); e.name != "trouble" {
			t.Errorf("while the store is down: %q with %s", e.name, e.data)
		}
		store.down.Store(false)
		take(t, lim, mete.Attrs{"header:x-user": "alice"})
		var d list
		e, _ := read(t, events)
		if e.into(t, "decisions", &d); len(d.List) != 1 {
			t.Errorf("%s", e.data)
		}
	})
}

func TestWatch_Refusals(t *testing.T) {
	lim, watches, _ := newWatched(t)
	h := newBoard(t, dashboard.Config{Limiter: lim, Watches: watches, Key: func(_ context.Context, masked string) (string, bool) {
		return "free:x-user=alice", masked == "free:~0123456789ab"
	}})
	for _, tt := range []struct {
		token, key string
		status     int
		want       string
	}{
		{"", "free:x-user=alice", http.StatusUnauthorized, "role read"},
		{"op", "", http.StatusBadRequest, "key is missing"},
		{"op", "fre:x-user=alice", http.StatusNotFound, `did you mean \"free\"`},
		{"op", "free:~000000000000", http.StatusNotFound, "not known here"},
		{"op", "<script>", http.StatusNotFound, "no limit"},
		{"op", strings.Repeat("x", 10<<10), http.StatusNotFound, "bytes"},
		{"op", "\xff\x00\u202e", http.StatusNotFound, "no limit"},
	} {
		w := ask(h, tt.token, "GET", watchPath(tt.key), "")
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.want) || strings.Contains(w.Body.String(), "<script>") || w.Body.Len() > 1000 {
			t.Errorf("%.40q: %d %.300s", tt.key, w.Code, w.Body)
		}
	}
	if w := ask(h, "r", "HEAD", watchPath("free:~0123456789ab"), ""); w.Code != http.StatusOK || w.Header().Get("Content-Type") != "text/event-stream" {
		t.Errorf("HEAD: %d %v", w.Code, w.Header())
	}
}

// There are as many watches as there may be, each ends when its viewer goes, and all
// of them when the dashboard does.
func TestWatch_Bounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim, watches, _ := newWatched(t)
		h := newBoard(t, dashboard.Config{Limiter: lim, Watches: watches})
		path := watchPath("free:x-user=alice")
		var leaves []func()
		for range dashboard.MaxWatches {
			events, leave := follow(t, h, path)
			read(t, events)
			leaves = append(leaves, leave)
		}
		if w := ask(h, "op", "GET", path, ""); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "close a page") {
			t.Errorf("one more: %d %s", w.Code, w.Body)
		}
		leaves[0]()
		events, leave := follow(t, h, path)
		if e, _ := read(t, events); e.name != "bucket" {
			t.Errorf("after one has gone: %q %s", e.name, e.data)
		}
		h.Close()
		for {
			e, ok := read(t, events)
			if !ok {
				t.Error("the stream ended without a word")
				break
			}
			if e.name == "bye" {
				break
			}
		}
		leave()
		for _, leave := range leaves[1:] {
			leave()
		}
		stops := 0
		for range dashboard.MaxWatches { // none is left behind
			if _, err := watches.Watch("k", nil); err == nil {
				stops++
			}
		}
		if stops != dashboard.MaxWatches {
			t.Errorf("%d watches are free, want all %d", stops, dashboard.MaxWatches)
		}
	})
}
