// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/cmd/internal/server"
	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/internal/testkit"
	"github.com/metehq/mete/pgstore/rules"
	"github.com/metehq/mete/store"
)

// withRules is a configuration whose policy is in a database, where there is one rule:
// addresses have buckets of 2.
func withRules(t *testing.T, p *proctest.Postgres) config.Config {
	t.Helper()
	c := testConfig()
	c.ReloadInterval = time.Hour // only database notifications trigger a reload
	c.PolicyDatabase = storeurl.MustParse(strings.Replace(p.URL(), "postgres@", "postgres:secret@", 1) + "&schema=limits")
	source, err := rules.Connect(t.Context(), c.PolicyDatabase.Postgres.Options, rules.Config{Schema: "limits"})
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	sql(t, p, `INSERT INTO limits.rate_limit_rule (name, key_pattern, scope, rate_per_second, burst_capacity) VALUES ('client', 'ip:{ip}', 'ip', 0.00001, 2)`)
	return c
}

func sql(t *testing.T, p *proctest.Postgres, statement string) {
	t.Helper()
	if _, err := p.Psql(statement); err != nil {
		t.Fatal(err)
	}
}

// logged waits until all servers have logged a text so often.
func logged(t *testing.T, text string, n int, servers ...*running) {
	t.Helper()
	testkit.Until(t, "the log says "+text, func() bool {
		for _, s := range servers {
			if s.log.Count(text) < n {
				return false
			}
		}
		return true
	})
}

func TestDatabase_ChangesReachAllServers(t *testing.T) {
	t.Parallel()
	p := proctest.StartPostgres(t)
	c := withRules(t, p)
	a, b := start(t, c), start(t, c)
	for _, s := range []*running{a, b} {
		for i, want := range []int{200, 200, 429} {
			if got := s.take("192.0.2.1"); got != want {
				t.Errorf("take %d: %d, want %d", i, got, want)
			}
		}
	}
	sql(t, p, `UPDATE limits.rate_limit_rule SET burst_capacity = 3`)
	logged(t, "policy reloaded", 1, a, b)
	for _, s := range []*running{a, b} {
		for i, want := range []int{200, 429} {
			if got := s.take("192.0.2.1"); got != want {
				t.Errorf("take %d after the burst was raised by 1: %d, want %d", i, got, want)
			}
		}
	}
	if strings.Contains(a.log.String(), "secret") {
		t.Errorf("the log has the password:\n%s", a.log)
	}
}

func TestDatabase_BrokenRowKeepsThePolicy(t *testing.T) {
	t.Parallel()
	p := proctest.StartPostgres(t)
	s := start(t, withRules(t, p))
	sql(t, p, `INSERT INTO limits.rate_limit_rule (name, key_pattern, scope, rate_per_second, burst_capacity) VALUES ('typo', '{header:x user}', 'custom', 1, 1);
		UPDATE limits.rate_limit_rule SET burst_capacity = 1 WHERE name = 'client'`)
	logged(t, "policy invalid, old policy stays active", 1, s)
	for i, want := range []int{200, 200, 429} {
		if got := s.take("192.0.2.1"); got != want {
			t.Errorf("take %d: %d, want %d", i, got, want)
		}
	}
	if s.log.Count(`rule 2 \"typo\": spec/limit_keys/0: a header name is made of letters`) != 1 {
		t.Errorf("the log does not name the row:\n%s", s.log)
	}
	s.server.Reload()
	testkit.Until(t, "it is said again when asked", func() bool { return s.log.Count("policy invalid") == 2 })
	sql(t, p, `DELETE FROM limits.rate_limit_rule WHERE name = 'typo'; INSERT INTO limits.rate_limit_policy VALUES ('rules', '{"mode": "shadwo"}')`)
	testkit.Until(t, "the log names the document", func() bool { return s.log.Count(`policy \"rules\": spec/mode: mode must be`) >= 1 })
	sql(t, p, `DELETE FROM limits.rate_limit_policy`)
	logged(t, "policy reloaded", 1, s)
	if got := s.take("192.0.2.9"); got != 200 {
		t.Errorf("take under the new policy: %d", got)
	}
	if got := s.take("192.0.2.9"); got != 429 {
		t.Errorf("take beyond the new burst of 1: %d", got)
	}
}

// After cut connections and during a database outage, the policy stays active. Later changes still arrive.
func TestDatabase_ConnectionsCut(t *testing.T) {
	t.Parallel()
	p := proctest.StartPostgres(t)
	s := start(t, withRules(t, p))
	sql(t, p, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'mete%'`)
	sql(t, p, `UPDATE limits.rate_limit_rule SET burst_capacity = 3`)
	logged(t, "policy reloaded", 1, s)
	p.Kill()
	testkit.Until(t, "the server notices", func() bool { return s.log.Count("cannot follow rules") >= 1 }) // one, where both came as one to it
	s.server.Reload()
	testkit.Until(t, "a reload fails", func() bool { return s.log.Count("cannot read policy") == 1 })
	if got := s.take("192.0.2.1"); got != 200 {
		t.Errorf("take without the database: %d", got)
	}
	p.Restart()
	sql(t, p, `UPDATE limits.rate_limit_rule SET burst_capacity = 4`)
	testkit.Until(t, "the change comes through", func() bool { return s.log.Count("policy reloaded") == 2 })
}

func TestDatabase_OnlyWhenAsked(t *testing.T) {
	t.Parallel()
	p := proctest.StartPostgres(t)
	c := withRules(t, p)
	c.ReloadInterval = 0
	s := start(t, c)
	s.server.Reload()
	testkit.Until(t, "rules that have not changed are read when asked", func() bool { return s.log.Count("policy reloaded") == 1 })
	if n, err := p.Psql(`SELECT count(*) FROM pg_stat_activity WHERE application_name = 'mete rules'`); n != "0" {
		t.Errorf("%s connections follow the rules (%v), want none", n, err)
	}
}

func TestDatabase_CannotStart(t *testing.T) {
	t.Parallel()
	p := proctest.StartPostgres(t)
	c := withRules(t, p)
	sql(t, p, `UPDATE limits.rate_limit_rule SET spec = jsonb_set(spec, '{mode}', '"shadwo"')`)
	_, err := server.New(t.Context(), c, slog.New(slog.DiscardHandler))
	if _, broken := errors.AsType[rules.Errors](err); !broken || !strings.Contains(err.Error(), `rule 1 "client": spec/mode`) {
		t.Errorf("broken rows: %v, want their list", err)
	}
	sql(t, p, `TRUNCATE limits.rate_limit_rule`)
	if _, err = server.New(t.Context(), c, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "no active rule") {
		t.Errorf("no rows: %v", err)
	}

	c.PolicyDatabase = storeurl.MustParse("postgres://postgres:secret@" + proctest.FreeAddr(t) + "/postgres?schema=limits")
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	log := new(testkit.Log)
	_, err = server.New(ctx, c, slog.New(slog.NewTextHandler(log, nil)))
	if !errors.Is(err, store.ErrUnavailable) || strings.Contains(err.Error()+log.String(), "secret") || log.Count("trying again") != 1 {
		t.Errorf("nothing answers: %v, want %v, one complaint and no password; log:\n%s", err, store.ErrUnavailable, log)
	}
}
