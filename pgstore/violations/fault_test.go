// SPDX-License-Identifier: Apache-2.0

package violations_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/internal/testkit"
	"github.com/metehq/mete/pgstore/violations"
)

// holds asserts that everything recorded is in the table or counted as dropped.
func (d *database) holds(s violations.Stats) {
	d.t.Helper()
	if s.Recorded != s.Written+s.Dropped+s.Waiting {
		d.t.Errorf("stats %+v: recorded %d, want %d", s, s.Recorded, s.Written+s.Dropped+s.Waiting)
	}
	if got := d.denials(); got != s.Written {
		d.t.Errorf("%d denials in the table, want %d", got, s.Written)
	}
}

// TestRecorder_ServerHangs proves that denied requests do not notice a hanging server, or its end.
func TestRecorder_ServerHangs(t *testing.T) {
	server := proctest.StartPostgres(t)
	d := migrated(t, server.URL(), "mete")
	r := d.recorder(func(c *violations.Config) {
		c.Timeout, c.MaxQueue, c.MaxRows = time.Second, 1600, 1000
	})
	r.Record(t.Context(), denial("free", "first", mete.Attrs{}))
	settle(t, r)
	server.Pause()
	one := denial("free", "", mete.Attrs{"jwt:sub": "alice", "path": "/v1"})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := time.Now()
	const n = 200_000
	for i := range n {
		one.Limits()[0].Key = fmt.Sprint("key ", i%50_000)
		r.Record(t.Context(), one)
	}
	if each := time.Since(start) / n; each > 100*time.Microsecond {
		t.Errorf("%v for each denial while the server hangs", each)
	}
	testkit.Eventually(t, "the database and its recorder", func() error {
		if s := r.Stats(); s.Failed < 2 {
			return fmt.Errorf("%d writes failed, want some", s.Failed)
		}
		return nil
	})
	s := r.Stats()
	if s.Queue > 1602 || s.Waiting != n || s.Dropped != 0 {
		t.Errorf("stats %+v, want all that wait in 1602 rows at most", s)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 16<<20 {
		t.Errorf("%d bytes more on the heap, want less than 16 MiB", grown)
	}
	server.Resume()
	s = settle(t, r)
	if s.Written != n+1 || s.Dropped != 0 {
		t.Errorf("stats %+v, want all written", s)
	}
	d.holds(s)
}

func TestRecorder_ServerRestarts(t *testing.T) {
	server := proctest.StartPostgres(t)
	d := migrated(t, server.URL(), "mete")
	r := d.recorder(func(c *violations.Config) { c.Timeout = time.Second })
	stop := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			r.Record(t.Context(), denial("free", fmt.Sprint("key ", i%100), mete.Attrs{}))
		}
	}()
	for range 3 {
		rows := r.Stats().Rows
		testkit.Eventually(t, "the database and its recorder", func() error {
			if r.Stats().Rows < rows+100 {
				return fmt.Errorf("%d rows are written, want %d", r.Stats().Rows, rows+100)
			}
			return nil
		})
		server.Restart()
	}
	close(stop)
	<-stopped
	s := settle(t, r)
	if s.Failed == 0 || s.Dropped != 0 {
		t.Errorf("stats %+v, want failures and nothing dropped", s)
	}
	d.pool.Reset()
	d.holds(s)
}

// TestRecorder_AnswerIsLost proves that rows are written once if the answer is lost.
func TestRecorder_AnswerIsLost(t *testing.T) {
	d := newDatabase(t)
	u, err := url.Parse(d.url)
	if err != nil {
		t.Fatal(err)
	}
	proxy := proctest.StartProxy(t, u.Host)
	u.Host = proxy.Addr
	d.exec("CREATE FUNCTION " + d.table("_slow") + "() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_advisory_xact_lock(TG_RELID::bigint); RETURN NULL; END'")
	d.exec("CREATE TRIGGER slow AFTER INSERT ON " + d.table("") + " EXECUTE FUNCTION " + d.table("_slow") + "()")
	held, err := d.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer held.Rollback(t.Context())
	if _, err := held.Exec(t.Context(), "SELECT pg_advisory_xact_lock($1::text::regclass::oid::bigint)", d.table("")); err != nil {
		t.Fatal(err)
	}
	far := &database{t: t, schema: d.schema, pool: connect(t, u.String())}
	r := far.recorder(nil)
	for i := range 10 {
		r.Record(t.Context(), denial("free", fmt.Sprint("key ", i), mete.Attrs{}))
	}
	testkit.Eventually(t, "the database and its recorder", func() error {
		const waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'advisory' AND query LIKE $1"
		if one[int64](d, waiting, "COPY%"+d.schema+"%") == 0 {
			return errors.New("nothing is being written")
		}
		return nil
	})
	proxy.CutNow()
	if err := held.Rollback(t.Context()); err != nil { // now it is committed, but not acknowledged
		t.Fatal(err)
	}
	s := settle(t, r)
	if s.Failed == 0 || s.Written != 10 {
		t.Errorf("stats %+v, want a failure and 10 written", s)
	}
	d.holds(s)
}

// TestRecorder_ServerRefuses proves that rejected writes are retried, unless the rows are the reason.
func TestRecorder_ServerRefuses(t *testing.T) {
	for state, kept := range map[string]bool{
		"53100": true,  // disk_full
		"42501": true,  // insufficient_privilege
		"57P01": true,  // admin_shutdown
		"55P03": true,  // lock_not_available
		"22000": false, // data_exception
		"23514": false, // check_violation
	} {
		d := newDatabase(t)
		d.exec("CREATE FUNCTION " + d.table("_no") + "() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '" + state + "'; END$$")
		d.exec("CREATE TRIGGER no BEFORE INSERT ON " + d.table("") + " EXECUTE FUNCTION " + d.table("_no") + "()")
		log := new(testkit.Log)
		r := d.recorder(func(c *violations.Config) { c.Logger = log.Logger() })
		r.Record(t.Context(), denial("free", "a", mete.Attrs{}))
		if !kept {
			if s := settle(t, r); s.Dropped != 1 || s.Failed != 1 {
				t.Errorf("%s: stats %+v, want one failure and it dropped", state, s)
			}
		} else {
			testkit.Eventually(t, "the database and its recorder", func() error {
				if s := r.Stats(); s.Failed < 2 {
					return fmt.Errorf("%s: stats %+v, want more attempts", state, s)
				}
				return nil
			})
			d.exec("DROP TRIGGER no ON " + d.table(""))
			if s := settle(t, r); s.Written != 1 || s.Dropped != 0 {
				t.Errorf("%s: stats %+v, want it written in the end", state, s)
			}
		}
		if got := strings.Count(log.String(), "cannot write"); got != 1 {
			t.Errorf("%s: logged %d times that it cannot write, want once:\n%s", state, got, log)
		}
	}
}

// TestRecorder_TableComesLater creates the table after the recorder.
func TestRecorder_TableComesLater(t *testing.T) {
	d := &database{t: t, url: proctest.PostgresURL(t), schema: proctest.PostgresSchema(t)}
	d.pool = connect(t, d.url)
	r := d.recorder(nil)
	r.Record(t.Context(), denial("free", "a", mete.Attrs{}))
	testkit.Eventually(t, "the database and its recorder", func() error {
		if r.Stats().Failed == 0 {
			return errors.New("no failure")
		}
		return nil
	})
	migrated(t, d.url, d.schema)
	if s := settle(t, r); s.Written != 1 {
		t.Errorf("stats %+v, want it written", s)
	}
}

func TestClose_WritesWhatIsThere(t *testing.T) {
	d := newDatabase(t)
	r := d.recorder(func(c *violations.Config) { c.Window = time.Minute })
	const n = 10_000
	for i := range n {
		r.Record(t.Context(), denial("free", fmt.Sprint("key ", i), mete.Attrs{}))
	}
	if err := r.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if got := d.denials(); got != n {
		t.Errorf("%d denials in the table, want %d", got, n)
	}
	r.Record(t.Context(), denial("free", "late", mete.Attrs{}))
	if s := r.Stats(); s.Dropped != 1 || s.Waiting != 0 {
		t.Errorf("stats %+v after the end, want the last dropped", s)
	}
	if err := r.Close(); err == nil {
		t.Error("Close again: no error, although one was dropped")
	}
}

// TestClose_ServerHangs proves that Close ends, and reports the lost denials.
func TestClose_ServerHangs(t *testing.T) {
	server := proctest.StartPostgres(t)
	d := migrated(t, server.URL(), "mete")
	r := d.recorder(func(c *violations.Config) { c.Timeout = 200 * time.Millisecond })
	r.Record(t.Context(), denial("free", "a", mete.Attrs{}))
	settle(t, r)
	server.Pause()
	for i := range 100 {
		r.Record(t.Context(), denial("free", fmt.Sprint("key ", i), mete.Attrs{}))
	}
	start := time.Now()
	err := r.Close()
	if took := time.Since(start); took > patience/2 {
		t.Errorf("Close took %v", took)
	}
	if err == nil || !strings.Contains(err.Error(), "100 denials were not written") {
		t.Errorf("Close: %v, want the number of those that are lost", err)
	}
	if s := r.Stats(); s.Dropped != 100 || s.Waiting != 0 {
		t.Errorf("stats %+v, want 100 dropped", s)
	}
	server.Resume()
}

// TestClose_WhileWriting proves that the timeout of Close starts with the call, even while a write is in flight.
func TestClose_WhileWriting(t *testing.T) {
	server := proctest.StartPostgres(t)
	d := migrated(t, server.URL(), "mete")
	const timeout = 5 * time.Second // half of it exceeds the delays of a slow machine
	r := d.recorder(func(c *violations.Config) { c.Timeout = timeout })
	r.Record(t.Context(), denial("free", "a", mete.Attrs{}))
	settle(t, r) // and the partitions are created
	tx, err := d.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	if _, err := tx.Exec(t.Context(), "LOCK TABLE "+d.table("")); err != nil {
		t.Fatal(err)
	}
	r.Record(t.Context(), denial("free", "a", mete.Attrs{}))
	writing := func() error {
		if one[int64](d, `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'COPY%'`) == 0 {
			return errors.New("nothing is written")
		}
		return nil
	}
	testkit.Eventually(t, "the database and its recorder", writing)
	start := time.Now()
	if err := r.Close(); err == nil {
		t.Error("Close: no error, although one was dropped")
	}
	if took := time.Since(start); took > timeout*3/2 {
		t.Errorf("Close took %v, want %v at most", took, timeout)
	}
}
