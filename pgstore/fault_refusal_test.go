// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/faulttest"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/store"
)

// A refusal is a server that answers with an error.
type refusal struct {
	name       string
	begin, end string // statements of the superuser
	lock       string // a statement in a transaction that lasts until end
	want       string // the error
	reconnect  bool   // so that begin takes effect
	forgets    bool   // the buckets are lost
}

var refusals = []refusal{{
	name: "read-only", want: "SQLSTATE 25006", reconnect: true,
	begin: "ALTER ROLE app SET default_transaction_read_only = on",
	end:   "ALTER ROLE app RESET default_transaction_read_only",
}, {
	name: "statement timeout", want: "SQLSTATE 57014", reconnect: true,
	begin: "ALTER ROLE app SET statement_timeout = '20ms'", lock: "LOCK mete.bucket",
	end: "ALTER ROLE app RESET statement_timeout",
}, {
	name: "lock timeout", want: "SQLSTATE 55P03", reconnect: true,
	begin: "ALTER ROLE app SET lock_timeout = '10ms'", lock: "LOCK mete.bucket",
	end: "ALTER ROLE app RESET lock_timeout",
}, {
	name: "permission revoked", want: "SQLSTATE 42501",
	begin: "REVOKE UPDATE, INSERT ON mete.bucket FROM app",
	end:   "GRANT UPDATE, INSERT ON mete.bucket TO app",
}, {
	name: "schema forbidden", want: "SQLSTATE 42501",
	begin: "REVOKE USAGE ON SCHEMA mete FROM app",
	end:   "GRANT USAGE ON SCHEMA mete TO app",
}, {
	name: "schema renamed", want: "call pgstore.Migrate",
	begin: "ALTER SCHEMA mete RENAME TO elsewhere",
	end:   "ALTER SCHEMA elsewhere RENAME TO mete",
}, {
	name: "table dropped", want: "SQLSTATE 42P01", forgets: true,
	begin: "CREATE TABLE keep (LIKE mete.bucket INCLUDING ALL); DROP TABLE mete.bucket CASCADE",
	end:   "ALTER TABLE keep RENAME TO bucket; ALTER TABLE bucket SET SCHEMA mete; GRANT ALL ON mete.bucket TO app",
}}

// late reports whether a take's own deadline came first: in the queue, in flight, or at a lock. It waits for a lock
// for the remaining time at most.
func (r refusal) late(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || pgconn.Timeout(err) ||
		r.lock != "" && err != nil && strings.Contains(err.Error(), "SQLSTATE 55P03") && mete.Spent(err) == mete.NotSpent
}

// TestFault_Refused proves that rejected takes spend nothing. The error is a failure and not a denial, and ends
// with its cause.
func TestFault_Refused(t *testing.T) {
	faulttest.RunParallel(t)
	s := proctest.StartPostgres(t)
	root := at(t, s.URL(), "", pgstore.Config{})
	root.must("CREATE ROLE app LOGIN; GRANT USAGE ON SCHEMA mete TO app; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA mete TO app")
	for _, fault := range refusals {
		t.Run(fault.name, func(t *testing.T) { refuse(t, s, fault) })
	}
}

func refuse(t *testing.T, s *proctest.Postgres, fault refusal) {
	p := at(t, s.URL(), strings.Replace(s.URL(), "postgres@", "app@", 1)+"&target_session_attrs=any", pgstore.Config{Timeout: faulttest.Patience})
	p.must("DELETE FROM mete.bucket; DELETE FROM mete.bucket_memory")
	tr := startTraffic(t, p, faulttest.WaitForever([]*faulttest.Taker{{Charges: chargesOf("k")}, {Charges: chargesOf("id", "vast"), IDs: true}}))
	tr.WaitAnswers(10)
	p.must(fault.begin)
	if fault.reconnect {
		p.pool.Reset()
	}
	release := func() {}
	if fault.lock != "" {
		tr.WaitAnswers(5) // by the settings there are now
		release = p.holding(fault.lock)
	}
	charges := slowCharges("l", "m")
	for _, mode := range []mete.Mode{{}, {ID: "x"}, {Within: faulttest.Within}, {UpTo: true}} {
		for _, charges := range [][]store.Charge{charges, charges[:1]} {
			allowed, err := p.take(charges, mode)
			if mode.Within > 0 && fault.late(err) {
				continue // it was queued behind another take
			}
			if allowed || err == nil || mete.Spent(err) != mete.NotSpent || !strings.Contains(err.Error(), fault.want) {
				t.Errorf("take of %d in mode %+v: %v, %v; want %q and not spent", len(charges), mode, allowed, err, fault.want)
			}
		}
	}
	tr.WaitCalls(2)
	p.must(fault.end)
	release()
	if fault.reconnect {
		p.pool.Reset()
	}
	tr.WaitAnswers(10)
	if found := p.must("SELECT count(*) FROM mete.bucket WHERE key IN ('l', 'm')"); found != "0" {
		t.Errorf("%s buckets have been charged by takes that were refused", found)
	}
	if allowed, err := p.take(charges, mete.Mode{ID: "x"}); err != nil || !allowed {
		t.Errorf("take afterwards: %v, %v", allowed, err)
	}
	tr.Stop()
	tr.CheckFailures()
	if _, maybe, example := tr.Failures(); maybe > 0 {
		t.Errorf("%d takes may have been, such as %v; want none", maybe, example)
	}
	if fault.forgets {
		tr.CheckBound(1)
		return
	}
	tr.CheckBound(0)
	tr.CheckConserved()
}
