// SPDX-License-Identifier: Apache-2.0

package inpostgres_test

import (
	"testing"

	"github.com/metehq/mete/bench/subject"
	"github.com/metehq/mete/bench/subject/inpostgres"
	"github.com/metehq/mete/bench/subject/remote"
	"github.com/metehq/mete/bench/subject/remote/remotetest"
	"github.com/metehq/mete/internal/proctest"
)

const connections = 4

func open(t *testing.T, s inpostgres.Subject, server *proctest.Postgres, logged bool, q subject.Quota) remote.Limiter {
	t.Helper()
	limiter, err := s.New(t.Context(), inpostgres.Place{URL: server.URL(), Logged: logged, Connections: connections}, q)
	if err != nil {
		t.Fatalf("New(%+v): %v", q, err)
	}
	return limiter
}

// empty drops every subject's tables.
func empty(t *testing.T, server *proctest.Postgres) {
	t.Helper()
	if _, err := server.Psql("DROP TABLE IF EXISTS bucket; DROP SCHEMA IF EXISTS mete CASCADE"); err != nil {
		t.Fatal(err)
	}
}

func TestSubjectsLimit(t *testing.T) {
	server := proctest.StartPostgres(t)
	for _, s := range inpostgres.All {
		t.Run(s.Name, func(t *testing.T) {
			remotetest.Test(t, func(t *testing.T, q subject.Quota) remote.Limiter {
				empty(t, server)
				return open(t, s, server, false, q)
			})
		})
	}
}

// TestLoggedIsLogged looks for the table that has a row after a take.
func TestLoggedIsLogged(t *testing.T) {
	server := proctest.StartPostgres(t)
	for _, s := range inpostgres.All {
		for logged, want := range map[bool]string{false: "u", true: "p"} {
			empty(t, server)
			limiter := open(t, s, server, logged, subject.Deny)
			remotetest.Ask(t, limiter.Caller(), true, "user:00000000001")
			limiter.Close()
			got, err := server.Psql(`SELECT relpersistence FROM pg_class
				WHERE relname IN ('bucket', 'bucket_durable') AND relkind = 'r' AND pg_relation_size(oid) > 0`)
			if err != nil || got != want {
				t.Errorf("%s, logged = %v: a table of kind %q has the row, %v, want %q", s.Name, logged, got, err, want)
			}
		}
	}
}

// TestErrorsAreNotAnswers asks a server that is gone: a limiter that hid that
// would be measured as a fast one.
func TestErrorsAreNotAnswers(t *testing.T) {
	server := proctest.StartPostgres(t)
	for _, s := range inpostgres.All {
		t.Run(s.Name, func(t *testing.T) {
			server.Restart()
			empty(t, server)
			limiter := open(t, s, server, false, subject.Allow)
			defer limiter.Close()
			take := limiter.Caller()
			remotetest.Ask(t, take, true, "user:00000000001")
			server.Kill()
			if allowed, err := take([]string{"user:00000000001"}); err == nil {
				t.Errorf("allowed = %v without a server, want an error", allowed)
			}
		})
	}
}
