// SPDX-License-Identifier: Apache-2.0

package inredis_test

import (
	"testing"

	"github.com/metehq/mete/bench/subject"
	"github.com/metehq/mete/bench/subject/inredis"
	"github.com/metehq/mete/bench/subject/remote"
	"github.com/metehq/mete/bench/subject/remote/remotetest"
	"github.com/metehq/mete/internal/proctest"
)

// TestSubjectsLimit leaves floors out: they decide nothing.
func TestSubjectsLimit(t *testing.T) {
	server := proctest.StartRedis(t)
	for _, s := range inredis.All {
		if s.Kind == inredis.Floor {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			remotetest.Test(t, func(t *testing.T, q subject.Quota) remote.Limiter {
				if _, err := server.Do("FLUSHALL"); err != nil {
					t.Fatal(err)
				}
				limiter, err := s.New(server.Addr, q)
				if err != nil {
					t.Fatalf("New(%+v): %v", q, err)
				}
				return limiter
			})
		})
	}
}

// TestErrorsAreNotAnswers asks a server that is gone: a limiter that hid that
// would be measured as a fast one.
func TestErrorsAreNotAnswers(t *testing.T) {
	for _, s := range inredis.All {
		if s.Kind == inredis.Leased { // lives on what it has taken
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel() // go-redis takes seconds to give up
			server := proctest.StartRedis(t)
			limiter, err := s.New(server.Addr, subject.Allow)
			if err != nil {
				t.Fatalf("New: %v", err)
			}
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
