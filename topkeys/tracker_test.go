// SPDX-License-Identifier: Apache-2.0

package topkeys_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/storetest"
	"github.com/metehq/mete/topkeys"
)

// shown is a list on one line.
func shown(l topkeys.List) string {
	var b strings.Builder
	for _, k := range l.Keys {
		fmt.Fprintf(&b, "%s=%d±%d ", k.Key, k.Count, k.Error)
	}
	return strings.TrimSpace(b.String())
}

func TestTracker_Hooks(t *testing.T) {
	const rules = `{"rules": [
		{"name": "trial", "mode": "shadow", "limit_keys": ["ip:address"], "group": "t", "algorithm_config": {"rate": "1/1h", "burst": 1}},
		{"name": "user", "limit_keys": ["path"], "algorithm_config": {"rate": "1/1h", "burst": 5}},
		{"name": "strict", "limit_keys": ["query:x"], "match": {"method": "PUT"}, "on_missing": "deny", "algorithm_config": {"rate": "1/1h", "burst": 9}}]}`
	m, err := policy.Load([]byte(rules), policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tr := newTracker(t, topkeys.Config{})
	clock := storetest.NewClock()
	at := bucket.Instant(5_000_000)
	l, err := mete.New(storetest.NewModel(clock.Now), m, mete.Config{
		OnDenial:    func(_ context.Context, d *mete.Denial) { tr.OnDenial(at, d) },
		OnNearLimit: func(_ context.Context, d *mete.Denial) { tr.OnNearLimit(at, d) },
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 8 {
		l.Take(t.Context(), mete.Request{Attributes: mete.Attrs{"ip:address": "192.0.2.1", "path": "/a"}})
	}
	l.Take(t.Context(), mete.Request{Attributes: mete.Attrs{"method": "PUT"}})
	for _, tt := range []struct {
		rule string
		kind topkeys.Kind
		want string
	}{
		{"user", topkeys.KindDenied, "user:path=/a=3±0"},
		{"user", topkeys.KindNear, "user:path=/a=2±0"},
		{"user", topkeys.KindShadow, ""},
		{"trial", topkeys.KindDenied, ""},
		{"trial", topkeys.KindShadow, "trial:ip=192.0.2.1=4±0"}, // asked only about what others allow
		{"strict", topkeys.KindDenied, ""},
		{"none", topkeys.KindDenied, ""},
	} {
		if got := shown(tr.Top(at, tt.rule, tt.kind, 0)); got != tt.want {
			t.Errorf("rule %s, %v: %q, want %q", tt.rule, tt.kind, got, tt.want)
		}
	}
	key := tr.Top(at, "user", topkeys.KindDenied, 0).Keys[0]
	if key.First != at || key.Last != at || key.Retry != at.Add(time.Hour) {
		t.Errorf("first %d, last %d, retry %d; want %d, the same, an hour later", key.First, key.Last, key.Retry, at)
	}
}

// A list excludes records older than its window, and has the time since which a key is known.
func TestTop_Window(t *testing.T) {
	const half = topkeys.DefaultWindow / 2
	tr := newTracker(t, topkeys.Config{})
	at := func(n int) bucket.Instant { return bucket.Instant(0).Add(time.Duration(n) * half) }
	record := func(now bucket.Instant, key string) { tr.Record(now, topkeys.KindDenied, "r", key, time.Second) }
	record(at(0)+1, "a")
	record(at(1)+2, "a")
	record(at(1)+3, "b")
	record(at(2)+4, "a")
	for _, tt := range []struct {
		now    bucket.Instant
		window time.Duration
		want   string
		since  bucket.Instant
	}{
		{at(2) + 5, 0, "a=3±0 b=1±0", at(0)},
		{at(2) + 5, time.Minute, "a=3±0 b=1±0", at(0)},
		{at(2) + 5, time.Second, "a=2±0 b=1±0", at(1)},
		{at(3), 0, "a=2±0 b=1±0", at(1)},
		{at(3), half, "a=1±0", at(2)},
		{at(4), 0, "a=1±0", at(2)},
		{at(3), 0, "a=1±0", at(2)}, // time that runs backwards stands still
		{at(5), 0, "", at(3)},
	} {
		list := tr.Top(tt.now, "r", topkeys.KindDenied, tt.window)
		if got := shown(list); got != tt.want || list.Since != tt.since {
			t.Errorf("at %d, window %v: %q since %d, want %q since %d", tt.now, tt.window, got, list.Since, tt.want, tt.since)
		}
		if len(list.Keys) > 0 && tt.now <= at(4) && list.Keys[0].First != 1 {
			t.Errorf("at %d, window %v: a is seen since %d, want 1", tt.now, tt.window, list.Keys[0].First)
		}
	}
	record(at(20), "a")
	if k := tr.Top(at(20), "r", topkeys.KindDenied, 0).Keys[0]; k.Count != 1 || k.First != at(20) || k.Retry != at(20).Add(time.Second) {
		t.Errorf("after a pause: %+v, want a new beginning", k)
	}
}

func TestTop_LongKeysAreCut(t *testing.T) {
	tr := newTracker(t, topkeys.Config{})
	long := strings.Repeat("k", topkeys.MaxKeyBytes)
	keys := []string{long, long + "1", long + "2", strings.Repeat("k", 100_000), ""}
	for i, key := range keys {
		for range i + 1 {
			tr.Record(0, topkeys.KindDenied, "r", key, 0)
		}
	}
	list := tr.Top(0, "r", topkeys.KindDenied, 0)
	if len(list.Keys) != len(keys) {
		t.Fatalf("%d keys, want %d: %s", len(list.Keys), len(keys), shown(list))
	}
	for i, k := range list.Keys {
		if whole := i == 0 || i == 4; k.Count != uint64(5-i) || k.Cut == whole || len(k.Key) > topkeys.MaxKeyBytes || whole && k.Key != keys[4-i] {
			t.Errorf("key %d: %+v", i, k)
		}
	}
}

func TestRetain_ForgetsRulesAndCountsOn(t *testing.T) {
	tr := newTracker(t, topkeys.Config{})
	empty := tr.Stats()
	for _, key := range keysOf(1000, func(i int) uint64 { return uint64(i) }) {
		tr.Record(0, topkeys.KindDenied, "old", key, 0)
	}
	tr.Record(0, topkeys.KindNear, "new", "k", 0)
	before := tr.Stats()
	if before.Rules != 2 || before.Keys != topkeys.DefaultCounters+1 || before.Bytes <= 100*200 || before.Recorded != 1001 {
		t.Errorf("stats %+v", before)
	}
	tr.Retain(func(rule string) bool { return rule == "new" })
	after := tr.Stats()
	if after.Rules != 1 || after.Keys != 1 || after.Recorded != 1001 || after.Bytes >= before.Bytes {
		t.Errorf("stats %+v, before %+v", after, before)
	}
	if got := shown(tr.Top(0, "old", topkeys.KindDenied, 0)); got != "" {
		t.Errorf("a rule that is no more has %s", got)
	}
	tr.Retain(func(string) bool { return false })
	if s := tr.Stats(); s.Bytes != empty.Bytes || s.Keys != 0 {
		t.Errorf("stats %+v without a rule", s)
	}
}

// A flood of rules and keys takes no more than MaxBytes; what there is no room for is
// counted, and the lists stay true.
func TestTracker_IsBounded(t *testing.T) {
	const m = topkeys.MaxCounters
	tr := newTracker(t, topkeys.Config{Counters: m})
	const rules = 300
	keys := keysOf(m+100, func(i int) uint64 { return uint64(i) })
	exact := map[string]uint64{}
	for _, key := range keys {
		exact[key] = 1
	}
	for i := range rules {
		for _, key := range keys {
			tr.Record(0, topkeys.KindDenied, fmt.Sprint("r", i), key, 0)
		}
	}
	s := tr.Stats()
	if s.Bytes > topkeys.MaxBytes || s.Dropped == 0 || s.Recorded+s.Dropped != uint64(rules*len(keys)) {
		t.Errorf("stats %+v", s)
	}
	short := 0 // rules at which there was too little left to grow
	for _, list := range tr.All(0, topkeys.KindDenied, 0) {
		if list.Unlisted > list.Total/m {
			short++
			continue
		}
		if err := checkGuarantee(list, exact, m); err != nil {
			t.Errorf("rule %s: %v", list.Rule, err)
		}
	}
	if short > 10 {
		t.Errorf("%d rules have fewer counters", short)
	}
}

func TestAll_OrdersRules(t *testing.T) {
	tr := newTracker(t, topkeys.Config{})
	for i, rule := range []string{"b", "a", "c", "c"} {
		tr.Record(0, topkeys.KindDenied, rule, fmt.Sprint(i), 0)
	}
	tr.Record(0, topkeys.KindNear, "near", "k", 0)
	var got []string
	for _, l := range tr.All(0, topkeys.KindDenied, 0) {
		got = append(got, l.Rule)
	}
	if want := []string{"c", "a", "b"}; !slices.Equal(got, want) {
		t.Errorf("rules %q, want %q", got, want)
	}
}

func TestNew_RejectsInvalidConfigs(t *testing.T) {
	for _, c := range []topkeys.Config{{Counters: -1}, {Counters: topkeys.MaxCounters + 1}, {Window: time.Millisecond}, {Window: -1}, {Window: 25 * time.Hour}} {
		if _, err := topkeys.New(c, 0); err == nil {
			t.Errorf("New(%+v): no error", c)
		}
	}
	for _, k := range []topkeys.Kind{topkeys.KindDenied, topkeys.KindShadow, topkeys.KindNear} {
		if got, err := topkeys.ParseKind(k.String()); got != k || err != nil {
			t.Errorf("ParseKind(%q) = %v, %v", k, got, err)
		}
	}
	if _, err := topkeys.ParseKind("all"); err == nil {
		t.Error(`ParseKind("all"): no error`)
	}
}

func TestRecord_AllocatesNothing(t *testing.T) {
	tr := newTracker(t, topkeys.Config{Counters: 8})
	keys := keysOf(1000, func(i int) uint64 { return uint64(i) })
	keys = append(keys, strings.Repeat("long", 100))
	for _, at := range []bucket.Instant{0, 30_000_000, 60_000_000} { // a summary for each
		for _, key := range keys {
			tr.Record(at, topkeys.KindDenied, "r", key, 0)
		}
	}
	i, now := 0, bucket.Instant(60_000_000)
	if n := testing.AllocsPerRun(5000, func() {
		i, now = i+1, now+100_000
		tr.Record(now, topkeys.KindDenied, "r", keys[i%len(keys)], time.Second)
	}); n != 0 {
		t.Errorf("a record allocates %v times", n)
	}
}

// A summary that had to do without memory does not take it for its keys' past that
// there is some again.
func TestTracker_StaysTrueWhenMemoryComesBack(t *testing.T) {
	const m = topkeys.MaxCounters
	tr := newTracker(t, topkeys.Config{Counters: m})
	exact := map[string]uint64{}
	record := func(keys ...string) {
		for _, key := range keys {
			exact[key]++
			tr.Record(0, topkeys.KindDenied, "late", key, 0)
		}
	}
	keys := keysOf(m, func(i int) uint64 { return uint64(i) })
	record(keys[:8]...)
	for i := 0; tr.Stats().Dropped == 0; i++ {
		for _, key := range keys {
			tr.Record(0, topkeys.KindDenied, fmt.Sprint("r", i), key, 0)
		}
	}
	record(keys[100:200]...)
	tr.Retain(func(rule string) bool { return rule == "late" })
	for range 3 {
		record(keys[:300]...)
	}
	list := tr.Top(0, "late", topkeys.KindDenied, 0)
	if err := checkGuarantee(list, exact, len(list.Keys)); err != nil {
		t.Errorf("with %d counters: %v", len(list.Keys), err)
	}
}
