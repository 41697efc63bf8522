// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/cmd/internal/server"
	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/internal/testkit"
	"github.com/metehq/mete/pgstore/violations"
)

// schemaURL is the URL of a schema of its own.
func schemaURL(t *testing.T) (raw, schema string) {
	t.Helper()
	u, err := url.Parse(proctest.PostgresURL(t))
	if err != nil {
		t.Fatal(err)
	}
	schema = proctest.PostgresSchema(t)
	query := u.Query()
	query.Set("schema", schema)
	u.RawQuery = query.Encode()
	return u.String(), schema
}

// reader asks a database, which may be hidden by a hash of key.
func reader(t *testing.T, rawURL, schema, key string) *violations.Reader {
	t.Helper()
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Del("schema")
	u.RawQuery = query.Encode()
	pool, err := pgxpool.New(t.Context(), u.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	secret := []byte(key)
	if key == "" {
		if secret, err = violations.DeriveKey(t.Context(), pool, schema); err != nil {
			t.Fatal(err)
		}
	}
	r, err := violations.NewReader(pool, violations.Config{Schema: schema, Key: secret, Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// records waits until the server records violations: where the database is slow, it
// starts without.
func (r *running) records() {
	r.t.Helper()
	testkit.Until(r.t, "violations are recorded", func() bool { return r.log.Count("violations recorded") == 1 })
}

// awaitViolations waits until a query finds so many denials.
func awaitViolations(t *testing.T, r *violations.Reader, q violations.Query, want int64) []violations.Violation {
	t.Helper()
	var rows []violations.Violation
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := proctest.Poll(ctx, func(ctx context.Context) (err error) {
		if rows, err = r.List(ctx, q); err != nil {
			return err
		}
		var got int64
		for _, v := range rows {
			got += v.Denials
		}
		if got != want {
			return fmt.Errorf("%d denials are recorded, want %d", got, want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestViolations_AreRecorded(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"", "the key of the hashes"} {
		db, schema := schemaURL(t)
		c := testConfig()
		c.Policy, c.Violations, c.HashKey = policyFile(t, burst("2")), storeurl.MustParse(db), key
		s := start(t, c)
		s.records()
		for range 5 {
			s.take("192.0.2.77")
		}
		s.take("192.0.2.78")
		rows := awaitViolations(t, reader(t, db, schema, key), violations.Query{Key: "client:ip=192.0.2.77"}, 3)
		for _, v := range rows {
			if v.Rule != "client" || v.Network.String() != "192.0.2.0/24" || strings.Contains(v.Key, "192") {
				t.Errorf("recorded %+v, want the rule client, a network and a hash", v)
			}
		}
		text := s.metricsText()
		for _, line := range []string{
			"mete_violations_recorded_total 3", "mete_violations_written_total 3", "mete_violations_dropped_total 0",
			"mete_violations_waiting 0",
		} {
			if !strings.Contains(text, line+"\n") {
				t.Errorf("the metrics lack %s:\n%s", line, text)
			}
		}
		if s.log.Count("192.0.2.77") != 0 {
			t.Error("the log has an address in it")
		}
	}
}

// The last denials are recorded before the server ends.
func TestViolations_AtTheEnd(t *testing.T) {
	t.Parallel()
	db, schema := schemaURL(t)
	c := testConfig()
	c.Policy, c.Violations, c.ViolationsRaw = policyFile(t, burst("1")), storeurl.MustParse(db), true
	s := start(t, c)
	s.records()
	s.take("192.0.2.1")
	s.take("192.0.2.1")
	s.stop()
	if err := s.wait(); err != nil {
		t.Fatal(err)
	}
	rows := awaitViolations(t, reader(t, db, schema, "-"), violations.Query{}, 1)
	if len(rows) != 1 || rows[0].Key != "client:ip=192.0.2.1" || rows[0].Network.String() != "192.0.2.1/32" {
		t.Errorf("recorded %+v, want all as it is", rows)
	}
}

// Without a denial database, the server has no metrics for it.
func TestViolations_Off(t *testing.T) {
	t.Parallel()
	s := start(t, testConfig())
	if strings.Contains(s.metricsText(), "mete_violations") {
		t.Error("there are metrics of violations, which are off")
	}
}

// A server starts without the database, decides, and records as soon as there is
// one.
func TestViolations_DatabaseComesLater(t *testing.T) {
	t.Parallel()
	p := proctest.StartPostgres(t)
	p.Kill()
	c := testConfig()
	c.Policy, c.Violations = policyFile(t, burst("1")), storeurl.MustParse(p.URL())
	s := start(t, c)
	s.take("192.0.2.1")
	for range 2 {
		if got := s.take("192.0.2.1"); got != 429 {
			t.Errorf("take without the database of the violations: %d, want 429", got)
		}
	}
	if s.log.Count("violations database unreachable") != 1 {
		t.Error("the log does not say that the database does not answer")
	}
	if text := s.metricsText(); !strings.Contains(text, "mete_violations_dropped_total 2\n") {
		t.Errorf("the metrics lack what was missed:\n%s", text)
	}
	p.Restart()
	s.records()
	s.take("192.0.2.1")
	awaitViolations(t, reader(t, p.URL(), "mete", ""), violations.Query{}, 1)
}

// Errors that a retry cannot fix are reported at the start.
func TestViolations_StartFails(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(proctest.PostgresURL(t))
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/no_such_database"
	for db, want := range map[string]string{
		u.String():                   "no_such_database",
		"postgres://h/d?schema=a%27": "schema",
		"mysql://h":                  "postgres://",
	} {
		loaded, _, err := config.Load("", nil, []config.Setting{{Key: "violations", Value: db}})
		if err == nil {
			c := testConfig()
			c.Violations = loaded.Violations
			err = startFails(t, c)
		}
		if err == nil || !strings.HasPrefix(err.Error(), "violations: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one of the violations that says %q", db, err, want)
		}
	}
}

// startFails returns the error of a server that does not start.
func startFails(t *testing.T, c config.Config) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s, err := server.New(ctx, c, slog.New(slog.DiscardHandler))
	if err == nil {
		s.Close()
	}
	return err
}

// A server whose databases hang ends nevertheless: it gives up its last write.
func TestViolations_EndWhileTheDatabaseHangs(t *testing.T) {
	t.Parallel()
	p := proctest.StartPostgres(t)
	c := withRules(t, p)
	c.Violations = c.PolicyDatabase
	s := start(t, c)
	s.records()
	for range 3 {
		s.take("192.0.2.1")
	}
	testkit.Until(t, "one is recorded", func() bool { return strings.Contains(s.metricsText(), "mete_violations_written_total 1\n") })
	p.Pause()
	defer p.Resume()
	s.take("192.0.2.1")
	testkit.Until(t, "a write has failed", func() bool { return s.log.Count("cannot write violations") == 1 })
	s.stop()
	if err := s.wait(); err != nil { // fails if the server hangs, too
		t.Fatal(err)
	}
	if s.log.Count("1 denials were not written") != 1 {
		t.Errorf("the log does not say what is missing:\n%s", s.log)
	}
}
