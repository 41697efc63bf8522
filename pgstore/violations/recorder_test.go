// SPDX-License-Identifier: Apache-2.0

package violations_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/pgstore/violations"
	"github.com/metehq/mete/policy"
)

// TestRecorder_IsTheHookOfALimiter fills the table through the hook of a limiter.
func TestRecorder_IsTheHookOfALimiter(t *testing.T) {
	d := newDatabase(t)
	r := d.recorder(func(c *violations.Config) { c.Raw = true })
	m, err := policy.Load([]byte(`{"rules": [
		{"name": "user", "limit_keys": ["jwt:sub"], "algorithm_config": {"rate": "1/1h", "burst": 1}},
		{"name": "trial", "mode": "shadow", "limit_keys": ["ip:address"], "algorithm_config": {"rate": "1/1h", "burst": 1}},
		{"name": "strict", "limit_keys": ["query:x"], "match": {"method": "PUT"}, "on_missing": "deny", "algorithm_config": {"rate": "1/1h", "burst": 9}}],
		"overrides": [{"id": "scraper", "action": "block", "match": {"jwt:sub": "eve"}, "reason": "r", "author": "a", "expires_at": "2100-01-01T00:00:00Z"}]}`),
		policy.Options{})
	if err != nil {
		t.Fatal(err)
	}
	store, err := memstore.New(memstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	hourBefore := func() bucket.Instant { return bucket.At(time.Date(2099, 12, 31, 23, 0, 0, 0, time.UTC)) }
	l, err := mete.New(store, m, mete.Config{OnDenial: r.Record, Now: hourBefore})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(attrs mete.Attrs, cost bucket.Tokens) {
		if _, err := l.Take(t.Context(), mete.Request{Attributes: attrs, Cost: mete.TokensOf(cost)}); err != nil {
			t.Fatal(err)
		}
	}
	alice := mete.Attrs{"jwt:sub": "alice", "ip:address": "192.0.2.7", "method": "GET", "path": "/v1/things?secret=1"}
	ask(alice, 0)                                           // allowed
	ask(alice, 0)                                           // denied, and not counted by the trial rule
	ask(mete.Attrs{"ip:address": "::ffff:192.0.2.7"}, 0)    // denied only by the trial rule
	ask(mete.Attrs{"jwt:sub": "bob"}, 3*bucket.Token)       // never
	ask(mete.Attrs{"method": "PUT", "ip:address": "zz"}, 0) // no x
	ask(mete.Attrs{"jwt:sub": "eve"}, 0)                    // blocked
	settle(t, r)

	got, err := d.reader().List(t.Context(), violations.Query{})
	if err != nil {
		t.Fatal(err)
	}
	wait := time.Hour
	want := []violations.Violation{
		{Key: "user:sub=alice", User: "alice", Network: netip.MustParsePrefix("192.0.2.7/32"), Endpoint: "GET /v1/things",
			Rule: "user", Limit: "user", Reason: "token_bucket_exceeded", Tokens: 0, Cost: 1, RetryAfter: wait, Denials: 1, Node: "node-1"},
		{Key: "trial:ip=192.0.2.7", Network: netip.MustParsePrefix("192.0.2.7/32"),
			Rule: "trial", Limit: "trial", Reason: "token_bucket_exceeded", Tokens: 0, Cost: 1, RetryAfter: wait, Denials: 1, Shadow: true, Node: "node-1"},
		{Key: "user:sub=bob", User: "bob", Rule: "user", Limit: "user", Reason: "token_bucket_exceeded", Tokens: 1, Cost: 3,
			RetryAfter: bucket.Never, Denials: 1, Node: "node-1"},
		{Endpoint: "PUT", Rule: "strict", Reason: "missing_attribute", Tokens: -1, RetryAfter: bucket.Never, Denials: 1, Node: "node-1"},
		{User: "eve", Limit: "scraper", Reason: "blocked", Tokens: -1, RetryAfter: wait, Denials: 1, Node: "node-1"},
	}
	if len(got) != len(want) {
		t.Fatalf("%d rows, want %d: %+v", len(got), len(want), got)
	}
	for i, w := range want {
		g := got[len(got)-1-i] // newest first
		if age := time.Since(g.At); age < 0 || age > patience || g.Last != g.At {
			t.Errorf("row %d: at %v, last %v", i, g.At, g.Last)
		}
		if g.RetryAfter != bucket.Never {
			g.RetryAfter = g.RetryAfter.Round(time.Minute)
		}
		if g.ID == 0 {
			t.Errorf("row %d has no number", i)
		}
		g.ID, g.At, g.Last = 0, time.Time{}, time.Time{}
		if g != w {
			t.Errorf("row %d:\n got %+v\nwant %+v", i, g, w)
		}
	}
}

// TestRecorder_AggregatesAKey proves that the first denials of a key have a row each, and further ones share one.
func TestRecorder_AggregatesAKey(t *testing.T) {
	d := newDatabase(t)
	r := d.recorder(func(c *violations.Config) { c.Window = time.Minute })
	for i := range 1000 {
		r.Record(t.Context(), denial("free", "free:a", mete.Attrs{"path": fmt.Sprintf("/%d", i)}))
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	s := r.Stats()
	if s.Recorded != 1000 || s.Written != 1000 || s.Rows != 4 || s.Aggregated != 996 || s.Dropped+s.Overflowed+s.Failed != 0 {
		t.Errorf("stats %+v, want 1000 denials in 4 rows", s)
	}
	rows, err := d.reader().List(t.Context(), violations.Query{Key: "free:a"})
	if err != nil {
		t.Fatal(err)
	}
	var text []string
	for _, v := range rows {
		text = append(text, fmt.Sprintf("%s %d %g", v.Endpoint, v.Denials, v.Cost))
	}
	if got, want := strings.Join(text, ", "), "/3 997 1994, /2 1 2, /1 1 2, /0 1 2"; got != want {
		t.Errorf("rows %s, want %s", got, want)
	}
}

// TestRecorder_AttackByAKey records a million denials of one key in a few rows per window. There is one row, or
// four if a busy machine sent nothing for a window.
func TestRecorder_AttackByAKey(t *testing.T) {
	d := newDatabase(t)
	r := d.recorder(func(c *violations.Config) { c.Window = 50 * time.Millisecond })
	start := time.Now()
	const all = 1_000_000
	one := denial("free", "free:a", mete.Attrs{"jwt:sub": "alice", "path": "/v1"})
	for range all {
		r.Record(t.Context(), one)
	}
	s := settle(t, r)
	windows := int64(time.Since(start)/(50*time.Millisecond)) + 2
	if s.Written != all || s.Dropped+s.Overflowed != 0 || s.Rows > 4*windows {
		t.Errorf("stats %+v, want all written, in %d rows at most", s, 4*windows)
	}
	if got := d.denials(); got != all {
		t.Errorf("%d denials in the table, want %d", got, all)
	}
}

// TestRecorder_FloodOfKeys proves that a flood of keys writes a bounded number of rows per window with exact
// counts per rule.
func TestRecorder_FloodOfKeys(t *testing.T) {
	d := newDatabase(t)
	r := d.recorder(func(c *violations.Config) { c.Window, c.MaxRows, c.MaxQueue = 50*time.Millisecond, 100, 1600 })
	start := time.Now()
	const keys, all = 100_000, 1_000_000
	denials := map[string]*mete.Denial{"free": denial("free", "", mete.Attrs{}), "pro": denial("pro", "", mete.Attrs{})}
	for i := range all {
		d := denials["free"]
		if i%4 == 0 {
			d = denials["pro"]
		}
		d.Limits()[0].Key = fmt.Sprint("key ", i%keys)
		r.Record(t.Context(), d)
	}
	s := r.Stats()
	if s.Recorded != all || s.Dropped != 0 || s.Queue > 1600+2 {
		t.Errorf("stats %+v, want %d recorded, and no more than 1602 rows that wait", s, all)
	}
	s = settle(t, r)
	windows := int64(time.Since(start)/(50*time.Millisecond)) + 2
	if s.Written != all || s.Overflowed == 0 {
		t.Errorf("stats %+v, want all %d written, some of them only as a number", s, all)
	}
	for rule, want := range map[string]int64{"free": all * 3 / 4, "pro": all / 4} {
		if got := one[int64](d, "SELECT sum(denials)::bigint FROM "+d.table("")+" WHERE rule_name = $1", rule); got != want {
			t.Errorf("rule %s: %d denials in the table, want %d", rule, got, want)
		}
	}
	if got := one[int64](d, "SELECT count(*) FROM "+d.table("")); got != s.Rows || got > 100*windows {
		t.Errorf("%d rows in the table, want %d as the stats say, and at most 100 in each of %d windows", got, s.Rows, windows)
	}
	if got := one[int64](d, "SELECT sum(denials)::bigint FROM "+d.table("")+" WHERE bucket_key = '*'"); got != s.Overflowed {
		t.Errorf("%d denials of others, want %d", got, s.Overflowed)
	}
}

// TestRecorder_HidesWhoItWas proves that by default, no column contains a key, user or address (G12).
func TestRecorder_HidesWhoItWas(t *testing.T) {
	d := newDatabase(t)
	r := d.recorder(nil)
	attrs := mete.Attrs{"jwt:sub": "alice-7", "ip:address": "192.0.2.77", "path": "/v1"}
	r.Record(t.Context(), denial("user", "user:sub=alice-7", attrs))
	r.Record(t.Context(), denial("ip", "ip:ip=2001:db8:1:2::/64", mete.Attrs{"ip:address": "2001:db8:1:2::3"}))
	r.Record(t.Context(), shadowed("ip", "ip:ip=192.0.2.77", attrs))
	settle(t, r)
	whole := one[string](d, "SELECT string_agg(v::text, E'\n') FROM "+d.table("")+" v")
	for _, secret := range []string{"alice", "192.0.2.77", "2001:db8:1:2"} {
		if strings.Contains(whole, secret) {
			t.Errorf("the table has %q in it:\n%s", secret, whole)
		}
	}
	for _, shown := range []string{"192.0.2.0/24", "2001:db8:1::/48", ",/v1,", "~"} {
		if !strings.Contains(whole, shown) {
			t.Errorf("the table does not have %q in it:\n%s", shown, whole)
		}
	}
}
