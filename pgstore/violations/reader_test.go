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
	"github.com/metehq/mete/pgstore/violations"
)

// filled adds some denials, an hour apart, hashed or raw.
func filled(t *testing.T, raw bool) *database {
	d := newDatabase(t)
	now := time.Date(2026, 11, 21, 10, 30, 0, 0, time.UTC)
	for i, denied := range []*mete.Denial{
		denial("free", "free:a", mete.Attrs{"jwt:sub": "alice", "ip:address": "192.0.2.7", "method": "GET", "path": "/a"}),
		denial("free", "free:a", mete.Attrs{"jwt:sub": "alice", "ip:address": "192.0.2.8", "method": "GET", "path": "/b"}),
		denial("pro", "pro:b", mete.Attrs{"jwt:sub": "bob", "ip:address": "198.51.100.1", "method": "GET", "path": "/a"}),
		shadowed("trial", "trial:c", mete.Attrs{"ip:address": "2001:db8:1:2::3"}),
	} {
		r := d.recorder(func(c *violations.Config) {
			c.Raw, c.Now = raw, func() bucket.Instant { return bucket.At(now.Add(time.Duration(i) * time.Hour)) }
		})
		r.Record(t.Context(), denied)
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func TestList_FindsWhatIsAskedFor(t *testing.T) {
	at := func(hour int) time.Time { return time.Date(2026, 11, 21, hour, 0, 0, 0, time.UTC) }
	for _, raw := range []bool{false, true} {
		r := filled(t, raw).reader()
		for _, tt := range []struct {
			name  string
			query violations.Query
			want  string // the hours of the rows
		}{
			{"all", violations.Query{}, "13 12 11 10"},
			{"some", violations.Query{Limit: 2}, "13 12"},
			{"since and until", violations.Query{Since: at(11), Until: at(13)}, "12 11"},
			{"rule", violations.Query{Rule: "free"}, "11 10"},
			{"no such rule", violations.Query{Rule: "fre_"}, ""},
			{"key", violations.Query{Key: "free:a"}, "11 10"},
			{"user", violations.Query{User: "bob"}, "12"},
			{"a key is no user", violations.Query{User: "free:a"}, ""},
			{"network", violations.Query{Network: netip.MustParsePrefix("192.0.0.0/16")}, "11 10"},
			{"IPv6", violations.Query{Network: netip.MustParsePrefix("2001:db8:1:2::3/128")}, "13"},
			{"both", violations.Query{Rule: "free", Network: netip.MustParsePrefix("198.51.100.0/24")}, ""},
			{"quotes", violations.Query{Rule: "'; DROP TABLE x; --", User: `\`}, ""},
		} {
			rows, err := r.List(t.Context(), tt.query)
			if err != nil {
				t.Fatalf("%s: %v", tt.name, err)
			}
			var got []string
			for _, v := range rows {
				got = append(got, fmt.Sprint(v.At.UTC().Hour()))
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("raw %v, %s: rows of the hours %v, want %s", raw, tt.name, got, tt.want)
			}
		}
		// Stored values can be used in queries.
		rows, err := r.List(t.Context(), violations.Query{Rule: "pro"})
		if err != nil || len(rows) != 1 {
			t.Fatalf("%d rows of pro, %v", len(rows), err)
		}
		again, err := r.List(t.Context(), violations.Query{Key: rows[0].Key, User: rows[0].User, Network: rows[0].Network})
		if err != nil || len(again) != 1 {
			t.Errorf("asked for as it is stored: %d rows, %v, want 1", len(again), err)
		}
	}
}

func TestList_AddressesThatAreNetworks(t *testing.T) {
	one := violations.Query{Network: netip.MustParsePrefix("192.0.2.7/32")}
	for raw, want := range map[bool]int{false: 2, true: 1} {
		rows, err := filled(t, raw).reader().List(t.Context(), one)
		if err != nil || len(rows) != want {
			t.Errorf("raw %v: %d rows of %v, %v; want %d", raw, len(rows), one.Network, err, want)
		}
	}
}

func TestList_RefusesLimits(t *testing.T) {
	r := newDatabase(t).reader()
	for _, n := range []int{-1, violations.MaxList + 1} {
		if _, err := r.List(t.Context(), violations.Query{Limit: n}); err == nil {
			t.Errorf("limit %d: no error", n)
		}
		if _, err := r.Summarize(t.Context(), violations.Query{Limit: n}); err == nil {
			t.Errorf("summary with limit %d: no error", n)
		}
	}
}

func TestSummarize(t *testing.T) {
	r := filled(t, true).reader()
	s, err := r.Summarize(t.Context(), violations.Query{})
	if err != nil {
		t.Fatal(err)
	}
	show := func(groups []violations.Group) string {
		var parts []string
		for _, g := range groups {
			parts = append(parts, fmt.Sprintf("%s %d+%d", g.Name, g.Denials, g.Shadow))
		}
		return strings.Join(parts, ", ")
	}
	if s.Denials != 3 || s.Shadow != 1 || s.Rows != 4 {
		t.Errorf("%d denials, %d in shadow, %d rows; want 3, 1, 4", s.Denials, s.Shadow, s.Rows)
	}
	for what, pair := range map[string][2]string{
		"rules":     {show(s.Rules), "free 2+0, pro 1+0, trial 0+1"},
		"keys":      {show(s.Keys), "free:a 2+0, pro:b 1+0, trial:c 0+1"},
		"users":     {show(s.Users), "alice 2+0, bob 1+0"},
		"networks":  {show(s.Networks), "192.0.2.7 1+0, 192.0.2.8 1+0, 198.51.100.1 1+0, 2001:db8:1:2::3 0+1"},
		"endpoints": {show(s.Endpoints), "GET /a 2+0, GET /b 1+0"},
		"hours":     {show(s.Hours), "2026-11-21 10:00 1+0, 2026-11-21 11:00 1+0, 2026-11-21 12:00 1+0, 2026-11-21 13:00 0+1"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: %s, want %s", what, pair[0], pair[1])
		}
	}
	s, err = r.Summarize(t.Context(), violations.Query{User: "alice", Limit: 1})
	if err != nil || s.Denials != 2 || len(s.Rules) != 1 || len(s.Networks) != 1 {
		t.Errorf("of alice: %+v, %v; want her 2 denials, and one group of each kind", s, err)
	}
	if last := s.Rules[0].Last.UTC().Hour(); last != 11 {
		t.Errorf("the last in hour %d, want 11", last)
	}
}
