// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/pgstore/rules"
	"github.com/metehq/mete/policy"
)

// A reload by an operator does not replace a newer policy from the database.
func TestDatabaseSource_ReloadIsOvertaken(t *testing.T) {
	p := proctest.StartPostgres(t)
	source, err := rules.Open(t.Context(), p.URL(), rules.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(source.Close)
	run := func(statement string) string {
		t.Helper()
		out, err := p.Psql(statement)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	run(`INSERT INTO mete.rate_limit_rule (key_pattern, scope, rate_per_second, burst_capacity) VALUES ('global', 'global', 1, 1)`)
	var inForce []*policy.Matcher
	var refused error
	from := &databaseSource{tell: func(error) {}, url: storeurl.MustParse(p.URL()), source: source, log: slog.New(slog.DiscardHandler)}
	s := from.follower(func(m *policy.Matcher) error { inForce = append(inForce, m); return refused }).(*databaseFollower)
	if err := s.reload(t.Context()); err != nil {
		t.Fatal(err)
	}

	locked := make(chan error, 1)
	go func() {
		_, err := p.Psql(`BEGIN; LOCK TABLE mete.rate_limit_rule; SELECT pg_sleep(1000)`)
		locked <- err
	}()
	waiting := func(n int, which string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := proctest.Poll(ctx, func(context.Context) error {
			if got := run(`SELECT count(*) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND ` + which); got != fmt.Sprint(n) {
				return fmt.Errorf("%s connections %s, want %d", got, which, n)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	waiting(1, `wait_event = 'PgSleep'`)
	reloaded := make(chan error, 1)
	go func() { reloaded <- s.reload(t.Context()) }()
	waiting(1, `wait_event_type = 'Lock'`)
	later := new(policy.Matcher)
	refused = errors.New("it does not fit")
	s.replace(later, 7, nil)
	run(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'`)
	if err := <-reloaded; err != refused {
		t.Errorf("the operator is told %v, want what came of the change: %v", err, refused)
	}
	<-locked
	if n := len(inForce); n != 2 || inForce[n-1] != later {
		t.Errorf("%d policies were put in force, the last of them that of the database: %t; want 2, and that", n, inForce[n-1] == later)
	}
}
