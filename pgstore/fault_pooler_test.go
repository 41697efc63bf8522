// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"testing"

	"github.com/metehq/mete/internal/faulttest"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/pgstore"
)

// TestFault_Pooler proves that errors of a pooler for a lost server are recognized.
func TestFault_Pooler(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(s *proctest.Postgres, b *proctest.PgBouncer, p *place, tr *faulttest.Traffic){
		"pooler killed": func(_ *proctest.Postgres, b *proctest.PgBouncer, _ *place, _ *faulttest.Traffic) { b.Restart() },
		"server killed": func(s *proctest.Postgres, _ *proctest.PgBouncer, _ *place, _ *faulttest.Traffic) { s.Restart() },
		"backends sent away": func(_ *proctest.Postgres, _ *proctest.PgBouncer, p *place, tr *faulttest.Traffic) {
			for range 10 {
				p.must("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'mete'")
				tr.WaitCalls(1)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			faulttest.RunParallel(t)
			s := proctest.StartPostgres(t)
			b := proctest.StartPgBouncer(t, s.URL(), "default_pool_size=3", "server_login_retry=0.1")
			p := at(t, s.URL(), b.URL(), pgstore.Config{Durable: true})
			tr := startTraffic(t, p, plainAndOthers())
			tr.WaitAnswers(20)
			fault(s, b, p, tr)
			tr.WaitAnswers(20)
			tr.Stop()
			tr.CheckFailures()
			tr.CheckPrompt()
			tr.CheckBound(0)
			tr.CheckConserved()
		})
	}
}
