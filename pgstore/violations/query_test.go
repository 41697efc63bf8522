// SPDX-License-Identifier: Apache-2.0

package violations_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/metehq/mete/pgstore/violations"
)

func TestList_ByWhatIsRecordedBesides(t *testing.T) {
	r := filled(t, false).reader()
	for _, tt := range []struct {
		name  string
		query violations.Query
		want  string // the hours of the rows
	}{
		{"reason", violations.Query{Reason: "token_bucket_exceeded"}, "13 12 11 10"},
		{"another reason", violations.Query{Reason: "blocked"}, ""},
		{"enforced", violations.Query{Mode: violations.ModeEnforced}, "12 11 10"},
		{"in shadow", violations.Query{Mode: violations.ModeShadow}, "13"},
		{"method and path", violations.Query{Endpoint: "GET /a"}, "12 10"},
		{"path of any method", violations.Query{Endpoint: "/b"}, "11"},
		{"another method", violations.Query{Endpoint: "POST /"}, ""},
		{"no pattern", violations.Query{Endpoint: "GET %"}, ""},
		{"no expression", violations.Query{Endpoint: "/_"}, ""},
		{"quotes", violations.Query{Endpoint: "' OR true --", Reason: `\'`}, ""},
		{"control characters", violations.Query{Endpoint: "/\x00\x1b", Rule: "\x00", Key: "\x00", User: "\x00", Reason: "\xff"}, ""},
	} {
		rows, err := r.List(t.Context(), tt.query)
		var got []string
		for _, v := range rows {
			got = append(got, fmt.Sprint(v.At.UTC().Hour()))
		}
		if err != nil || strings.Join(got, " ") != tt.want {
			t.Errorf("%s: rows of the hours %v, %v; want %s", tt.name, got, err, tt.want)
		}
	}
}

// TestList_PageByPage proves that paging returns every row once, in order, even if many rows have the same time.
func TestList_PageByPage(t *testing.T) {
	d := newDatabase(t)
	d.exec("INSERT INTO " + d.table("") + ` (bucket_key, rule_name, requested_at)
		SELECT 'k', 'r', timestamptz '2026-11-20 23:59:59Z' + interval '1 second' * (i / 10) + interval '1 microsecond' * (i % 3) FROM generate_series(0, 99) i`)
	want, err := d.reader().List(t.Context(), violations.Query{Limit: 1000})
	if err != nil || len(want) != 100 {
		t.Fatalf("%d rows, %v; want 100", len(want), err)
	}
	for _, size := range []int{1, 7, 50, 100} {
		var got []violations.Violation
		q := violations.Query{Limit: size}
		for {
			page, err := d.reader().List(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			if len(page) == 0 {
				break
			}
			got = append(got, page...)
			q.After = page[len(page)-1].Position()
		}
		if !slices.Equal(got, want) {
			t.Errorf("pages of %d: %d rows that are not the %d in one list", size, len(got), len(want))
		}
	}
}

func TestReader_Masked(t *testing.T) {
	hidden, raw := filled(t, false), filled(t, true)
	stored, err := hidden.reader().List(t.Context(), violations.Query{})
	if err != nil {
		t.Fatal(err)
	}
	shown, err := raw.reader().List(t.Context(), violations.Query{})
	if err != nil || len(shown) != len(stored) {
		t.Fatalf("%d rows, %v; want %d", len(shown), err, len(stored))
	}
	for i := range shown {
		for _, v := range []violations.Violation{shown[i], stored[i]} {
			got := raw.reader().Mask(v)
			if got.Key != stored[i].Key || got.User != stored[i].User || got.Network != stored[i].Network {
				t.Errorf("%+v is masked as %+v, want what is stored where nothing is raw: %+v", v, got, stored[i])
			}
		}
	}
	none := violations.Violation{Key: violations.Others, Network: netip.Prefix{}}
	if got := raw.reader().Mask(none); got != none {
		t.Errorf("a row of nobody is masked as %+v", got)
	}
}

func TestReader_GivesUp(t *testing.T) {
	d := newDatabase(t)
	r, err := violations.NewReader(d.pool, violations.Config{Schema: d.schema, Timeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	blocked := make(chan struct{})
	ended := make(chan error)
	go func() {
		ended <- pgx.BeginFunc(context.Background(), d.pool, func(tx pgx.Tx) error {
			_, err := tx.Exec(context.Background(), "LOCK TABLE "+d.table(""))
			close(blocked)
			<-t.Context().Done()
			return err
		})
	}()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	<-blocked
	q := violations.Query{Since: time.Unix(0, 0), Until: time.Now()}
	_, err1 := r.List(t.Context(), q)
	_, err2 := r.Histogram(t.Context(), q)
	_, err3 := r.Summarize(t.Context(), q)
	for _, err := range []error{err1, err2, err3} {
		if !errors.Is(err, violations.ErrTimeout) {
			t.Errorf("of a table that is locked: %v, want ErrSlow", err)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.List(gone, q); err == nil || errors.Is(err, violations.ErrTimeout) {
		t.Errorf("of who is gone: %v, want another error", err)
	}
}

// TestReader_UsesIndexes proves that common queries use an index, for any amount of data.
func TestReader_UsesIndexes(t *testing.T) {
	d := newDatabase(t)
	d.exec("SELECT " + d.table("_maintain") + "(timestamptz '2026-11-21 12:00Z', interval '30 days')")
	d.exec("INSERT INTO " + d.table("") + ` (bucket_key, user_id, ip_address, endpoint, rule_name, requested_at)
		SELECT 'k' || i % 5000, 'u' || i % 5000, ('10.' || i % 50 || '.' || i / 50 % 100 || '.0/24')::inet, 'GET /', 'r' || i % 100, timestamptz '2026-11-20 00:00Z' + interval '1.7 seconds' * i
		FROM generate_series(1, 100000) i`)
	d.exec("ANALYZE " + d.table(""))
	all := violations.Query{Since: time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC), Until: time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)}
	with := func(change func(*violations.Query)) violations.Query {
		q := all
		change(&q)
		return q
	}
	r := d.reader()
	for _, tt := range []struct {
		name, index string
		query       violations.Query
	}{
		{"all", "_pkey", all},
		{"the next page", "_pkey", with(func(q *violations.Query) { q.After = violations.Position{At: all.Until.Add(-time.Hour), ID: 7} })},
		{"rule", "_rule_name_", with(func(q *violations.Query) { q.Rule = "r7" })},
		{"key", "_bucket_key_", with(func(q *violations.Query) { q.Key = "k7" })},
		{"user", "_user_id_", with(func(q *violations.Query) { q.User = "u7" })},
		{"network", "_ip_address_", with(func(q *violations.Query) { q.Network = netip.MustParsePrefix("10.7.9.0/24") })},
		{"a minute", "_pkey", with(func(q *violations.Query) { q.Until = q.Since.Add(time.Minute); q.Endpoint = "/none" })},
	} {
		statement, args := r.ListStatement(tt.query)
		checkPlan(t, d, tt.name, tt.index, statement, args)
	}
	statement, args := r.HistogramStatement(with(func(q *violations.Query) { q.Until = q.Since.Add(time.Minute) }))
	checkPlan(t, d, "histogram of a minute", "_pkey", statement, args)
	statement, args = r.HistogramStatement(with(func(q *violations.Query) { q.User = "u7" }))
	checkPlan(t, d, "histogram of a user", "_user_id_", statement, args)
}

// checkPlan asserts that a statement uses an index of a day with rows, and scans no such day completely.
func checkPlan(t *testing.T, d *database, name, index, statement string, args []any) {
	t.Helper()
	rows, err := d.pool.Query(t.Context(), "EXPLAIN "+statement, args...)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	plan := strings.Join(lines, "\n")
	if !strings.Contains(plan, "rate_limit_violation_p20261120"+index) {
		t.Errorf("%s: it does not use the index %s:\n%s", name, index, plan)
	}
	for _, day := range []string{"p20261120", "p20261121"} { // the other days are empty
		if strings.Contains(plan, "Seq Scan on rate_limit_violation_"+day) {
			t.Errorf("%s: it reads a whole day:\n%s", name, plan)
		}
	}
}

func TestHistogram(t *testing.T) {
	d := newDatabase(t)
	begin := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	for i := range 20 { // the last ones have the most
		for range i + 1 {
			d.exec("INSERT INTO "+d.table("")+" (bucket_key, rule_name, requested_at, denials, shadow) VALUES ('k', $1, $2, 2, $3)",
				fmt.Sprintf("r%02d", i), begin.Add(time.Duration(i)*time.Minute), i%2 == 1)
		}
	}
	q := violations.Query{Since: begin, Until: begin.Add(time.Hour)}
	h, err := d.reader().Histogram(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if !h.Start.Equal(begin) || h.Step != 30*time.Second || h.Bins != 120 || h.Rules != 20 || h.Rows != 210 {
		t.Errorf("%d bins of %v from %v, %d rules, %d rows; want 120 of 30s from %v, 20, 210", h.Bins, h.Step, h.Start.UTC(), h.Rules, h.Rows, begin)
	}
	var names []string
	for _, s := range h.Series {
		names = append(names, s.Rule)
	}
	if got, want := strings.Join(names, " "), "r19 r18 r17 r16 r15 *"; got != want {
		t.Errorf("series of %s, want %s", got, want)
	}
	if s := h.Series[0]; s.Shadow[38] != 40 || s.Denials[38] != 0 || sum(s.Shadow) != 40 {
		t.Errorf("r19: %v denied, %v in shadow; want 40 in shadow in the bin 38", s.Denials, s.Shadow)
	}
	if s := h.Series[5]; sum(s.Denials)+sum(s.Shadow) != 2*15*16/2 || s.Denials[0] != 2 || s.Shadow[2] != 4 {
		t.Errorf("the others: %v denied, %v in shadow; want all of r00 to r14", s.Denials, s.Shadow)
	}
	q.Rule = "r03"
	if h, err = d.reader().Histogram(t.Context(), q); err != nil || len(h.Series) != 1 || h.Rows != 4 || h.Rules != 1 {
		t.Errorf("of one rule: %+v, %v", h, err)
	}
	q.Rule = "none"
	if h, err = d.reader().Histogram(t.Context(), q); err != nil || len(h.Series) != 0 || h.Bins != 120 {
		t.Errorf("of none: %+v, %v; want no series", h, err)
	}
}

func sum(numbers []int64) (n int64) {
	for _, x := range numbers {
		n += x
	}
	return n
}

func TestHistogram_Bins(t *testing.T) {
	r := newDatabase(t).reader()
	begin := time.Date(2026, 11, 21, 10, 7, 13, 500, time.UTC)
	for _, tt := range []struct {
		long time.Duration
		step time.Duration
	}{
		{time.Microsecond, time.Second},
		{15 * time.Minute, 10 * time.Second},
		{time.Hour, 30 * time.Second}, // 121 bins, because it starts within one
		{24 * time.Hour, 15 * time.Minute},
		{7 * 24 * time.Hour, 2 * time.Hour},
		{30 * 24 * time.Hour, 12 * time.Hour},
		{365 * 24 * time.Hour, 4 * 24 * time.Hour},
		{100 * 365 * 24 * time.Hour, 306 * 24 * time.Hour},
	} {
		h, err := r.Histogram(t.Context(), violations.Query{Since: begin, Until: begin.Add(tt.long)})
		end := h.Start.Add(time.Duration(h.Bins) * h.Step)
		if err != nil || h.Bins < 1 || h.Bins > 120 || h.Start.After(begin) || end.Before(begin.Add(tt.long)) || h.Start.Add(h.Step).Before(begin) {
			t.Errorf("%v: %d bins of %v from %v, %v", tt.long, h.Bins, h.Step, h.Start, err)
		}
		if tt.long != time.Hour && tt.long < 100*24*time.Hour && h.Step != tt.step {
			t.Errorf("%v: bins of %v, want %v", tt.long, h.Step, tt.step)
		}
	}
	for name, q := range map[string]violations.Query{
		"no time":       {},
		"no end":        {Since: begin},
		"the wrong way": {Since: begin, Until: begin},
		"too long":      {Since: time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC), Until: begin},
	} {
		if _, err := r.Histogram(t.Context(), q); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	old := violations.Query{Since: time.Date(1960, 1, 1, 0, 0, 1, 0, time.UTC), Until: time.Date(1960, 1, 1, 0, 0, 3, 0, time.UTC)}
	if h, err := r.Histogram(t.Context(), old); err != nil || h.Bins != 2 || !h.Start.Equal(old.Since) {
		t.Errorf("before 1970: %+v, %v; want 2 bins from then", h, err)
	}
}

func TestViolation_Address(t *testing.T) {
	for network, want := range map[string]string{"": "", "192.0.2.7/32": "192.0.2.7", "192.0.2.0/24": "192.0.2.0/24", "2001:db8::1/128": "2001:db8::1", "2001:db8::/64": "2001:db8::/64"} {
		var v violations.Violation
		if network != "" {
			v.Network = netip.MustParsePrefix(network)
		}
		if got := v.Address(); got != want {
			t.Errorf("of %q the address is %q, want %q", network, got, want)
		}
	}
}
