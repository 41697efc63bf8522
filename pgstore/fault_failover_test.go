// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/faulttest"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/pgstore"
)

// pair starts a server and a synchronous standby.
func pair(t *testing.T) (primary, standby *proctest.Postgres) {
	t.Helper()
	primary = proctest.StartPostgres(t)
	_, port, _ := strings.Cut(primary.Addr, ":")
	standby = proctest.StartPostgres(t, "primary_conninfo=host=127.0.0.1 user=postgres application_name=standby port="+port)
	primary.Stop(proctest.StopFast)
	standby.Stop(proctest.StopFast)
	if err := os.WriteFile(filepath.Join(primary.DataDir, "standby.signal"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	const sh = `find "$2/" -mindepth 1 -delete && cp -a "$1/." "$2/" && rm "$1/standby.signal"`
	if output, err := exec.Command("sh", "-c", sh, "sh", primary.DataDir, standby.DataDir).CombinedOutput(); err != nil {
		t.Fatalf("copy the files of a server: %v\n%s", err, output)
	}
	primary.Restart()
	standby.Restart()
	if _, err := primary.Psql("ALTER SYSTEM SET synchronous_standby_names = 'standby'"); err != nil {
		t.Fatal(err)
	}
	faulttest.Eventually(t, "the standby follows", func() error {
		text, err := primary.Psql("SELECT pg_reload_conf() FROM pg_stat_replication WHERE state = 'streaming'")
		if err == nil && text != "t" {
			err = errors.New("not yet")
		}
		return err
	})
	return primary, standby
}

// TestFault_Failover promotes a standby. It has all commits of the durable table, but an empty unlogged table,
// with all buckets full.
func TestFault_Failover(t *testing.T) {
	t.Parallel()
	for name, durable := range map[string]bool{"unlogged": false, "durable": true} {
		t.Run(name, func(t *testing.T) {
			faulttest.RunParallel(t)
			primary, standby := pair(t)
			p := at(t, primary.URL(), behind(primary.URL(), primary.Addr+","+standby.Addr), pgstore.Config{Durable: durable})
			leavesStandby(t, standby, durable)
			tr := startTraffic(t, p, plainAndOthers())
			tr.WaitAnswers(20)
			primary.Kill()
			p.url = standby.URL()
			faulttest.Eventually(t, "takes fail", func() error {
				_, err := p.take(slowCharges("k"), mete.Mode{})
				if mete.Spent(err) != mete.NotSpent {
					return errors.Join(errors.New("take: want that it is not spent"), err)
				}
				return nil
			})
			p.must("SELECT pg_promote()")
			tr.WaitAnswers(20)
			tr.Stop()
			tr.CheckFailures()
			tr.CheckPrompt()
			if !durable {
				tr.CheckBound(1)
				return
			}
			tr.CheckBound(0)
			tr.CheckConserved()
		})
	}
}

// leavesStandby takes from a standby. Each take uses a new connection, which may reach a different server.
func leavesStandby(t *testing.T, standby *proctest.Postgres, durable bool) {
	t.Helper()
	pool := poolTo(t, standby.URL())
	s := open(t, pool, pgstore.Config{Durable: durable, SweepEvery: -1, Timeout: awhile})
	take := func() error {
		_, _, err := s.Take(t.Context(), nil, slowCharges("k"), mete.Mode{})
		notSpent(t, err, nil)
		return err
	}
	faulttest.Eventually(t, "the standby has the tables", func() error {
		const readOnly = "25006"
		if err := take(); !strings.Contains(err.Error(), readOnly) {
			return err
		}
		return nil
	})
	_ = take()
	if n := pool.Stat().NewConnsCount(); n < 2 {
		t.Errorf("%d connections were made, want that one to a standby is not used again", n)
	}
}

// TestFault_Switchover makes a server read-only while it keeps its connections, as in a planned failover of some
// clouds.
func TestFault_Switchover(t *testing.T) {
	faulttest.RunParallel(t)
	before, after := proctest.StartPostgres(t), proctest.StartPostgres(t)
	at(t, after.URL(), "", pgstore.Config{})
	p := at(t, before.URL(), behind(before.URL(), before.Addr+","+after.Addr), pgstore.Config{})
	tr := startTraffic(t, p, plainAndOthers())
	tr.WaitAnswers(20)
	if _, err := before.Psql("ALTER SYSTEM SET default_transaction_read_only = on"); err != nil {
		t.Fatal(err)
	}
	p.must("SELECT pg_reload_conf()")
	tr.WaitAnswers(20)
	tr.Stop()
	tr.CheckFailures()
	tr.CheckPrompt()
	tr.CheckBound(1)
}
