// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"errors"
	"os"
	"strconv"
	"testing"

	"github.com/metehq/mete/internal/faulttest"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/pgstore"
)

// ends are the ways in which a server ends. Unlogged buckets are full after a crash, and unchanged after a clean
// shutdown. Durable buckets are always unchanged.
var ends = []struct {
	name  string
	crash bool
	end   func(t *testing.T, s *proctest.Postgres, p *place, tr *faulttest.Traffic)
}{
	{"killed", true, func(t *testing.T, s *proctest.Postgres, p *place, tr *faulttest.Traffic) {
		s.Kill()
		tr.WaitCalls(4)
		s.Restart()
	}},
	{"stopped at once", true, func(t *testing.T, s *proctest.Postgres, p *place, _ *faulttest.Traffic) {
		s.Stop(proctest.StopImmediate)
		s.Restart()
	}},
	{"stopped", false, func(t *testing.T, s *proctest.Postgres, p *place, _ *faulttest.Traffic) {
		s.Stop(proctest.StopFast)
		s.Restart()
	}},
	{"backend killed", true, func(t *testing.T, s *proctest.Postgres, p *place, _ *faulttest.Traffic) { killBackend(t, p) }},
	{"backends sent away", false, func(t *testing.T, s *proctest.Postgres, p *place, tr *faulttest.Traffic) {
		for range 10 {
			p.must("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'mete'")
			tr.WaitCalls(1)
		}
	}},
}

// killBackend kills one server process of the store, which crashes the server.
func killBackend(t *testing.T, p *place) {
	t.Helper()
	before := p.must("SELECT pg_postmaster_start_time(), pg_stat_get_snapshot_timestamp() IS NULL")
	faulttest.Eventually(t, "a backend is in a call", func() error {
		text, err := p.do("SELECT pid FROM pg_stat_activity WHERE application_name = 'mete' AND state = 'active' LIMIT 1")
		if err != nil {
			return err
		}
		pid, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		backend, err := os.FindProcess(pid)
		if err != nil {
			return err
		}
		return backend.Kill()
	})
	faulttest.Eventually(t, "the server is back", func() error {
		after, err := p.do("SELECT pg_postmaster_start_time(), pg_stat_get_snapshot_timestamp() IS NULL")
		if err == nil && after != before {
			err = errors.New("another postmaster is there")
		}
		return err
	})
}

func TestFault_ServerEnds(t *testing.T) {
	t.Parallel()
	for _, tt := range ends {
		for name, durable := range map[string]bool{"unlogged": false, "durable": true} {
			t.Run(tt.name+"/"+name, func(t *testing.T) {
				faulttest.RunParallel(t)
				s := proctest.StartPostgres(t)
				p := at(t, s.URL(), "", pgstore.Config{Durable: durable})
				tr := startTraffic(t, p, plainAndOthers())
				tr.WaitAnswers(50)
				tt.end(t, s, p, tr)
				tr.WaitAnswers(50)
				tr.Stop()
				tr.CheckFailures()
				tr.CheckPrompt()
				if tt.crash && !durable {
					tr.CheckBound(1)
					return
				}
				tr.CheckBound(0)
				tr.CheckConserved()
			})
		}
	}
}
