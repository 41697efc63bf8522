// SPDX-License-Identifier: Apache-2.0

package httpapi_test

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
	"github.com/metehq/mete/api"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/monitor"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/topkeys"
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
func newWatched(t *testing.T) (*mete.Limiter, *monitor.Watches, *unreliable) {
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
	watches := new(monitor.Watches)
	lim, err := mete.New(store, m, mete.Config{OnDecision: watches.OnDecision})
	if err != nil {
		t.Fatal(err)
	}
	return lim, watches, store
}

func takeOne(t *testing.T, lim *mete.Limiter, attrs mete.Attrs) {
	t.Helper()
	if _, err := lim.Take(t.Context(), mete.Request{Attributes: attrs}); err != nil {
		t.Fatal(err)
	}
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

// look reads an event with the bucket.
func look(t *testing.T, e event) (w api.WatchEvent) {
	t.Helper()
	if e.into(t, "watch", &w); w.Bucket == nil {
		t.Fatalf("%s: there is no bucket", e.data)
	}
	return w
}

// decided reads an event with decisions alone.
func decided(t *testing.T, e event) (w api.WatchEvent) {
	t.Helper()
	if e.into(t, "watch", &w); w.Bucket != nil {
		t.Fatalf("%s: there is a bucket", e.data)
	}
	return w
}

func watchPath(key string) string { return "/v1/watch?key=" + url.QueryEscape(key) }

// The level is sent at once and every half second, and decisions soon after they were made.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim, watches, _ := newWatched(t)
		h := newLive(t, liveConfig{Limiter: lim, Live: httpapi.Live{Watches: watches}})
		time.Sleep(50 * time.Millisecond) // the bubble's: between two ticks
		begin := time.Now()
		events, leave := follow(t, h, watchPath("free:x-user=alice"))
		defer leave()
		next := func() event { t.Helper(); e, _ := read(t, events); return e }
		l := look(t, next())
		b := l.Bucket
		if b.Rule != "free" || b.Limit != "free" || b.Algorithm != "token_bucket" || b.Capacity != 20_000 || b.Remaining != 20_000 || b.Rate.Tokens != 10_000 || b.Rate.Per != api.Seconds(time.Second) ||
			b.Cost != 1000 || l.RetryAfter != 0 || l.FullAfter != 0 || b.Mode != "enforce" || l.At != api.Instant(bucket.At(begin)) {
			t.Errorf("%+v", l)
		}
		wantLevels(t, l, `[[0,20],[30,20]]`)
		for range 3 {
			takeOne(t, lim, mete.Attrs{"header:x-user": "alice"})
			takeOne(t, lim, mete.Attrs{"header:x-user": "bob"})
		}
		d := decided(t, next())
		if passed := time.Since(begin); passed != 200*time.Millisecond {
			t.Errorf("decisions are told after %v", passed)
		}
		if len(d.Decisions) != 3 || d.Dropped != 0 {
			t.Fatalf("%+v", d)
		}
		for i, one := range d.Decisions {
			if want := (api.WatchedDecision{At: l.At, Allowed: true, Cost: 1000, Remaining: api.Amount(19-i) * 1000}); one != want {
				t.Errorf("decision %d: %+v, want %+v", i, one, want)
			}
		}
		// Three tokens at once; since then two came back, and one follows.
		wantLevels(t, d, `[[-0.2,19],[-0.2,18],[-0.2,17],[0,19],[0.1,20],[30,20]]`)
		if d.FullAfter != api.Seconds(100*time.Millisecond) {
			t.Errorf("full after %v", d.FullAfter.Duration())
		}
		l = look(t, next())
		if passed := time.Since(begin); passed != 500*time.Millisecond || l.Bucket.Remaining != 20_000 {
			t.Errorf("%v left after %v", l.Bucket.Remaining, passed)
		}
		wantLevels(t, l, `[[-0.3,19],[-0.2,20],[0,20],[30,20]]`)
		if _, taken, err := lim.TakeBucket(t.Context(), "free:x-user=alice", 12.345); err != nil || taken != 12345 { // as another server does
			t.Fatal(taken, err)
		}
		l = look(t, next())
		if l.Bucket.Remaining != 12_655 || time.Since(begin) != time.Second {
			t.Errorf("%+v after %v", l, time.Since(begin))
		}
		// This take is not reported: the level drops at the next poll.
		wantLevels(t, l, `[[-0.5,20],[0,20],[0,12.655],[0.7345,20],[30,20]]`)
		if l.FullAfter != api.Seconds(734500*time.Microsecond) {
			t.Errorf("full after %v", l.FullAfter.Duration())
		}
	})
}

// wantLevels checks the points of an event.
func wantLevels(t *testing.T, e api.WatchEvent, want string) {
	t.Helper()
	if got := text(e.Levels); got != want {
		t.Errorf("levels %s, want %s", got, want)
	}
}

// A shadow limit reports its own outcome; a queue delays.
func TestWatch_ShadowAndQueue(t *testing.T) {
	const half = api.Seconds(500 * time.Millisecond)
	synctest.Test(t, func(t *testing.T) {
		lim, watches, _ := newWatched(t)
		h := newLive(t, liveConfig{Limiter: lim, Live: httpapi.Live{Watches: watches}})
		for _, tt := range []struct {
			key  string
			want []api.WatchedDecision // allowed, wait, shadow
		}{
			{"trial:x-user=alice", []api.WatchedDecision{{Allowed: true, Shadow: true}, {Wait: half, Shadow: true}}},
			{"queue:path=/a", []api.WatchedDecision{{Allowed: true}, {Allowed: true, Wait: half}}},
		} {
			time.Sleep(time.Minute)
			events, leave := follow(t, h, watchPath(tt.key))
			read(t, events)
			for range 2 {
				takeOne(t, lim, mete.Attrs{"header:x-user": "alice", "path": "/a"})
			}
			e, _ := read(t, events)
			for i, one := range decided(t, e).Decisions {
				got := api.WatchedDecision{Allowed: one.Allowed, Wait: one.Wait, Shadow: one.Shadow}
				if got != tt.want[i] {
					t.Errorf("%s %d: %+v; want %+v", tt.key, i, got, tt.want[i])
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
		events, leave := follow(t, newLive(t, liveConfig{Limiter: lim, Live: httpapi.Live{Watches: watches}}), watchPath("free:x-user=alice"))
		defer leave()
		read(t, events)
		for range 1200 {
			takeOne(t, lim, mete.Attrs{"header:x-user": "alice"})
		}
		e, _ := read(t, events)
		if d := decided(t, e); len(d.Decisions) != 500 || d.Dropped != 700 {
			t.Errorf("%d told, and %d dropped", len(d.Decisions), d.Dropped)
		}
	})
}

// While the store fails or the rule is gone, the viewer gets the reason without the store's error.
func TestWatch_Trouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim, watches, store := newWatched(t)
		store.down.Store(true)
		events, leave := follow(t, newLive(t, liveConfig{Limiter: lim, Live: httpapi.Live{Watches: watches}}), watchPath("free:x-user=alice"))
		defer leave()
		e, _ := read(t, events)
		if e.name != "trouble" || !strings.Contains(string(e.data), "store is unavailable") || strings.Contains(string(e.data), "192.0.2.7") {
			t.Errorf("%s %s", e.name, e.data)
		}
		store.down.Store(false)
		e, _ = read(t, events)
		look(t, e)
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
		events, leave := follow(t, newLive(t, liveConfig{Limiter: lim, Live: httpapi.Live{Watches: watches}}), watchPath("free:x-user=alice"))
		defer leave()
		if e, _ := read(t, events); e.name != "trouble" {
			t.Errorf("while the store is down: %q with %s", e.name, e.data)
		}
		store.down.Store(false)
		takeOne(t, lim, mete.Attrs{"header:x-user": "alice"})
		e, _ := read(t, events)
		if d := decided(t, e); len(d.Decisions) != 1 || len(d.Levels) == 0 {
			t.Errorf("%s", e.data)
		}
	})
}

// A client that reads slowly gets the events in the order of their times.
func TestWatch_InOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim, watches, _ := newWatched(t)
		h := newLive(t, liveConfig{Limiter: lim, Live: httpapi.Live{Watches: watches}})
		events, leave := follow(t, h, watchPath("free:x-user=alice"))
		defer leave()
		last := api.Instant(0)
		for range 60 {
			time.Sleep(1100 * time.Millisecond) // the bubble's: looks and decisions wait for the client
			takeOne(t, lim, mete.Attrs{"header:x-user": "alice"})
			e, _ := read(t, events)
			var w api.WatchEvent
			if e.into(t, "watch", &w); w.At < last {
				t.Fatalf("an event of %d comes after one of %d", w.At, last)
			}
			last = w.At
		}
	})
}

// A reader that names a key with its value does not get the mask of the key. By the masks of
// guessed keys, readers could find out the clients of other keys.
func TestWatch_NamedKeyHasNoMask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim, watches, _ := newWatched(t)
		tagged, err := policy.Load([]byte(`{"rules": [{"name": "free", "limit_keys": ["header:x-user"], "slot_by": "header:x-user", "algorithm_config": {"rps": 10, "burst": 20}}]}`), policy.Options{})
		if err == nil {
			err = lim.SetPolicy(tagged)
		}
		if err != nil {
			t.Fatal(err)
		}
		h := newLive(t, liveConfig{Limiter: lim, Live: httpapi.Live{Watches: watches}})
		for _, key := range []string{"free:x-user=alice", "{alice}free:x-user=alice"} {
			events, leave := follow(t, h, watchPath(key), "Authorization", "Bearer r")
			e, _ := read(t, events)
			if b := look(t, e).Bucket; b.Masked || b.Mask != "" {
				t.Errorf("%s: %s has a mask", key, e.data)
			}
			leave()
		}
	})
}

func TestWatch_Refusals(t *testing.T) {
	lim, watches, _ := newWatched(t)
	top, err := topkeys.New(topkeys.Config{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	h := newLive(t, liveConfig{Limiter: lim, Live: httpapi.Live{Watches: watches}, Top: httpapi.Top{Tracker: top}})
	d, err := lim.Take(t.Context(), mete.Request{Attributes: mete.Attrs{"header:x-user": "alice"}, Cost: 21})
	if err != nil || d.Allowed {
		t.Fatal(d, err)
	}
	top.OnDenial(bucket.At(time.Now()), &mete.Denial{Decision: d})
	var denied api.Top
	if err := json.Unmarshal(askAs(h, "r", "GET", "/v1/top", "").Body.Bytes(), &denied); err != nil || len(denied.Keys) != 1 {
		t.Fatal(denied, err)
	}
	masked := denied.Keys[0].Key
	for _, tt := range []struct {
		token, key string
		status     int
		want       string
	}{
		{"", "free:x-user=alice", http.StatusUnauthorized, "role read"},
		{"op", "", http.StatusBadRequest, "key is missing"},
		{"op", "fre:x-user=alice", http.StatusNotFound, `did you mean \"free\"`},
		{"op", "free:~000000000000", http.StatusNotFound, "none of this server's top keys"},
		{"op", "<script>", http.StatusNotFound, "no limit"},
		{"op", strings.Repeat("x", 10<<10), http.StatusNotFound, "bytes"},
		{"op", "\xff\x00\u202e", http.StatusNotFound, "no limit"},
	} {
		w := askAs(h, tt.token, "GET", watchPath(tt.key), "")
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.want) || strings.Contains(w.Body.String(), "<script>") || w.Body.Len() > 1000 {
			t.Errorf("%.40q: %d %.300s", tt.key, w.Code, w.Body)
		}
	}
	if w := askAs(h, "r", "HEAD", watchPath(masked), ""); w.Code != http.StatusOK || w.Header().Get("Content-Type") != "text/event-stream" {
		t.Errorf("HEAD: %d %v", w.Code, w.Header())
	}
}

// There are as many watches as there may be, each ends when its viewer goes, and all
// of them when the dashboard does.
func TestWatch_Bounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim, watches, _ := newWatched(t)
		h := newLive(t, liveConfig{Limiter: lim, Live: httpapi.Live{Watches: watches}})
		path := watchPath("free:x-user=alice")
		var leaves []func()
		for range monitor.MaxWatches {
			events, leave := follow(t, h, path)
			read(t, events)
			leaves = append(leaves, leave)
		}
		if w := askAs(h, "op", "GET", path, ""); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "close a page") {
			t.Errorf("one more: %d %s", w.Code, w.Body)
		}
		leaves[0]()
		events, leave := follow(t, h, path)
		if e, _ := read(t, events); e.name != "watch" {
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
		for range monitor.MaxWatches { // none is left behind
			if _, err := watches.Watch("k", nil); err == nil {
				stops++
			}
		}
		if stops != monitor.MaxWatches {
			t.Errorf("%d watches are free, want all %d", stops, monitor.MaxWatches)
		}
	})
}
