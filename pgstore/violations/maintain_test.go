// SPDX-License-Identifier: Apache-2.0

package violations_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/internal/testkit"
	"github.com/metehq/mete/pgstore/violations"
)

// A testClock returns the time that the test sets.
type testClock struct{ micros atomic.Int64 }

func newClock(at time.Time) *testClock {
	c := new(testClock)
	c.micros.Store(at.UnixMicro())
	return c
}

func (c *testClock) Now() bucket.Instant     { return bucket.Instant(c.micros.Load()) }
func (c *testClock) advance(d time.Duration) { c.micros.Add(d.Microseconds()) }

// retry advances the clock slightly at each check, so that maintenance that failed on a busy machine is retried a
// virtual minute later. The total is less than five minutes.
func (c *testClock) retry() { c.advance(50 * time.Millisecond) }

// days returns the partitions without their common prefix.
func (d *database) days() string {
	d.t.Helper()
	return one[string](d, `SELECT coalesce(string_agg(replace(inhrelid::regclass::text, $1, ''), ' ' ORDER BY inhrelid::regclass::text), '')
		FROM pg_inherits WHERE inhparent = $2::text::regclass AND inhrelid::regclass::text LIKE '%\_p2%'`,
		d.schema+".rate_limit_violation_p", d.table(""))
}

func (d *database) awaitDays(clock *testClock, want string) {
	d.t.Helper()
	testkit.Eventually(d.t, "the database and its recorder", func() error {
		if got := d.days(); got != want {
			clock.retry()
			return fmt.Errorf("partitions of %s, want %s", got, want)
		}
		return nil
	})
}

// TestRecorder_KeepsDays creates partitions ahead, and drops expired ones.
func TestRecorder_KeepsDays(t *testing.T) {
	d := newDatabase(t)
	clock := newClock(time.Date(2031, 1, 1, 23, 50, 0, 0, time.UTC))
	r := d.recorder(func(c *violations.Config) { c.Now, c.Retention = clock.Now, 48*time.Hour })
	d.awaitDays(clock, "20301231 20310101 20310102 20310103 20310104")
	r.Record(t.Context(), denial("free", "a", mete.Attrs{}))
	settle(t, r)
	for _, step := range []struct {
		days string
		rows int64
	}{
		{"20301231 20310101 20310102 20310103 20310104 20310105", 2},
		{"20310101 20310102 20310103 20310104 20310105 20310106", 3},
		{"20310102 20310103 20310104 20310105 20310106 20310107", 3},
	} {
		clock.advance(24 * time.Hour)
		d.awaitDays(clock, step.days)
		r.Record(t.Context(), denial("free", "a", mete.Attrs{}))
		settle(t, r)
		if got := d.denials(); got != step.rows {
			t.Errorf("on %v: %d rows, want %d", clock.Now().Time(), got, step.rows)
		}
	}
	if got := one[int64](d, "SELECT count(*) FROM "+d.table("_rest")); got != 0 {
		t.Errorf("%d rows in the rest, want all in their days", got)
	}
}

// TestRecorder_RowsWithoutADay keeps a day's rows in the default partition, and deletes them by age.
func TestRecorder_RowsWithoutADay(t *testing.T) {
	d := newDatabase(t)
	d.exec("INSERT INTO " + d.table("") + " (bucket_key, rule_name, requested_at) VALUES ('k', 'r', '2031-01-02 12:00+00'), ('k', 'r', '2031-01-06 12:00+00')")
	clock := newClock(time.Date(2031, 1, 1, 12, 0, 0, 0, time.UTC))
	r := d.recorder(func(c *violations.Config) { c.Now, c.Retention = clock.Now, 48*time.Hour })
	d.awaitDays(clock, "20301231 20310101 20310103 20310104")
	clock.advance(24 * time.Hour)
	r.Record(t.Context(), denial("free", "a", mete.Attrs{}))
	settle(t, r)
	if got := one[int64](d, "SELECT count(*) FROM "+d.table("_rest")); got != 3 {
		t.Errorf("%d rows in the rest, want 3: an insert never fails for want of a day", got)
	}
	clock.advance(3 * 24 * time.Hour)
	testkit.Eventually(t, "the database and its recorder", func() error {
		if got := one[int64](d, "SELECT count(*) FROM "+d.table("_rest")); got != 1 {
			clock.retry()
			return fmt.Errorf("%d rows in the rest, want the one that is young enough", got)
		}
		return nil
	})
}

// TestRecorder_TwentyNodes starts many nodes concurrently: each day has one partition.
func TestRecorder_TwentyNodes(t *testing.T) {
	d := newDatabase(t)
	const nodes, each = 20, 500
	clock := newClock(time.Date(2031, 1, 1, 12, 0, 0, 0, time.UTC))
	log := new(testkit.Log)
	var all []*violations.Recorder
	for i := range nodes {
		all = append(all, d.recorder(func(c *violations.Config) {
			c.Node, c.Logger, c.Now = fmt.Sprint("node-", i), log.Logger(), clock.Now
		}))
	}
	var wg sync.WaitGroup
	for _, r := range all {
		wg.Go(func() {
			for i := range each {
				r.Record(t.Context(), denial("free", fmt.Sprint("key ", i%7), mete.Attrs{}))
			}
		})
	}
	wg.Wait()
	for i, r := range all {
		if s := settle(t, r); s.Written != each || s.Failed != 0 {
			t.Errorf("node %d: %+v, want %d written and no failure", i, s, each)
		}
	}
	d.awaitDays(clock, "20301231 20310101 20310102 20310103 20310104")
	if got := d.denials(); got != nodes*each {
		t.Errorf("%d denials in the table, want %d", got, nodes*each)
	}
	if got := one[int64](d, "SELECT count(DISTINCT node) FROM "+d.table("")); got != nodes {
		t.Errorf("of %d nodes, want %d", got, nodes)
	}
	if got := one[int64](d, "SELECT count(*) - count(DISTINCT violation_id) FROM "+d.table("")); got != 0 {
		t.Errorf("%d numbers are there twice", got)
	}
	if text := log.String(); text != "" {
		t.Errorf("logged:\n%s", text)
	}
}

// TestRecorder_Rights proves that the documented privileges suffice. Missing ones cause a counted and logged
// error, which ends when they are granted.
func TestRecorder_Rights(t *testing.T) {
	server := proctest.StartPostgres(t)
	d := migrated(t, server.URL(), "audit")
	d.exec(`CREATE USER app; GRANT USAGE ON SCHEMA audit TO app`)
	user := &database{t: t, schema: d.schema, pool: connect(t, strings.Replace(server.URL(), "//postgres@", "//app@", 1))}
	log := new(testkit.Log)
	clock := newClock(time.Date(2031, 1, 1, 12, 0, 0, 0, time.UTC))
	r := user.recorder(func(c *violations.Config) { c.Logger, c.Now = log.Logger(), clock.Now })
	r.Record(t.Context(), denial("free", "a", mete.Attrs{}))
	testkit.Eventually(t, "the database and its recorder", func() error {
		if s := r.Stats(); s.Failed < 2 || s.Waiting != 1 {
			return fmt.Errorf("stats %+v, want failures, and one that waits", s)
		}
		return nil
	})
	d.exec(`GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA audit TO app`)
	if s := settle(t, r); s.Written != 1 || s.Dropped != 0 {
		t.Errorf("stats %+v, want it written after all", s)
	}
	clock.advance(time.Hour)
	user.awaitDays(clock, "20301231 20310102 20310103 20310104") // the day of the row started without it
	for text, want := range map[string]int{"cannot write violations, retrying": 1, "violation writes recovered": 1, "cannot maintain partitions": 1, "permission denied for": 2} {
		if got := strings.Count(log.String(), text); got != want {
			t.Errorf("logged %d times %q, want %d:\n%s", got, text, want, log)
		}
	}
	d.exec(`REVOKE DELETE ON ALL TABLES IN SCHEMA audit FROM app`)
	_, err := user.pool.Exec(t.Context(), "SELECT "+d.table("_maintain")+"(NULL, '0')")
	if err == nil || !strings.Contains(err.Error(), "DELETE privilege") {
		t.Errorf("who may not delete rows has days dropped: error %v", err)
	}
}

// TestRecorder_DeletedRules proves that denials of deleted rules stay.
func TestRecorder_DeletedRules(t *testing.T) {
	d := newDatabase(t)
	rules := pgx.Identifier{d.schema, "rate_limit_rule"}.Sanitize()
	d.exec("INSERT INTO " + rules + " (name, key_pattern, scope, rate_per_second, burst_capacity) VALUES ('user-free', 'user:{user_id}', 'user', 1, 5)")
	r := d.recorder(nil)
	r.Record(t.Context(), denial("user-free", "a", mete.Attrs{}))
	r.Record(t.Context(), denial("of a file", "b", mete.Attrs{}))
	settle(t, r)
	if got := one[int64](d, "SELECT count(*) FROM "+d.table("")+" v JOIN "+rules+" r USING (rule_id) WHERE rule_name = r.name"); got != 1 {
		t.Errorf("%d rows have a rule's number, want 1", got)
	}
	d.exec("DELETE FROM " + rules)
	r.Record(t.Context(), denial("user-free", "a", mete.Attrs{}))
	settle(t, r)
	if got := d.denials(); got != 3 {
		t.Errorf("%d denials after the rule was deleted, want 3", got)
	}
}

// TestDateStyle proves that date and interval styles have no effect, and that days start at the same time in
// every time zone.
func TestDateStyle(t *testing.T) {
	server := proctest.StartPostgres(t)
	first := connect(t, server.URL())
	for _, set := range []string{"datestyle = 'SQL, DMY'", "timezone = 'Asia/Kolkata'", "intervalstyle = 'iso_8601'"} {
		if _, err := first.Exec(t.Context(), "ALTER USER postgres SET "+set); err != nil {
			t.Fatal(err)
		}
	}
	d := migrated(t, server.URL(), "mete")
	bounds := one[string](d, `SELECT string_agg(pg_get_expr(c.relpartbound, c.oid), ' ') FROM pg_class c WHERE c.relname LIKE 'rate\_limit\_violation\_p2%' AND c.relkind = 'r'`)
	if strings.Count(bounds, " 05:30:00 ") == 0 || strings.Count(bounds, " 05:30:00 ") != strings.Count(bounds, ":00 ") {
		t.Errorf("days are %s, want them to begin at 05:30 in Kolkata", bounds)
	}
	r := d.recorder(func(*violations.Config) {})
	r.Record(t.Context(), denial("free", "a", mete.Attrs{}))
	if s := settle(t, r); s.Written != 1 || s.Failed != 0 {
		t.Fatalf("stats %+v, want one written", s)
	}
	reader := d.reader()
	list, err := reader.List(t.Context(), violations.Query{})
	if err != nil || len(list) != 1 || time.Since(list[0].At).Abs() > patience || time.Since(list[0].Last).Abs() > patience || list[0].RetryAfter != 1500*time.Millisecond {
		t.Errorf("list %+v, %v; want one, of now", list, err)
	}
	s, err := reader.Summarize(t.Context(), violations.Query{})
	if err != nil || len(s.Rules) != 1 || time.Since(s.Rules[0].Last).Abs() > patience {
		t.Errorf("summary %+v, %v; want one, of now", s, err)
	}
}
