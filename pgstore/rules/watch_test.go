// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"bytes"
	"context"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/pgstore/rules"
	"github.com/metehq/mete/policy"
)

// soon is the longest time until a change is active.
const soon = time.Second

// An update is a call of changed.
type update struct {
	policy   *policy.Matcher
	revision int64
	err      error
	at       time.Time
}

// A follower watches a database until the test ends.
type follower struct {
	*database
	updates chan update
	log     *logBuffer
}

// follow opens the schema and watches it.
func follow(t *testing.T, at, schema string, config rules.Config) *follower {
	t.Helper()
	f := &follower{updates: make(chan update, 100), log: new(logBuffer)}
	config.Logger = slog.New(slog.NewTextHandler(f.log, nil))
	f.database = openDatabase(t, at, schema, config)
	_, since, _ := f.Load(t.Context(), options)
	ctx, stop := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() {
		f.Watch(ctx, since, options, func(m *policy.Matcher, revision int64, err error) {
			f.updates <- update{m, revision, err, time.Now()}
		})
	})
	t.Cleanup(func() {
		stop()
		watching.Wait()
	})
	return f
}

// next returns the next update.
func (f *follower) next() update {
	f.t.Helper()
	select {
	case u := <-f.updates:
		return u
	case <-time.After(patience):
		f.t.Fatalf("no update; log:\n%s", f.log)
		return update{}
	}
}

// listening waits until this many connections listen for changes.
func (d *database) listening(n int) {
	d.t.Helper()
	d.eventually("connections wait for changes", func() bool { return len(d.listeners()) == n })
}

// listeners returns the server processes that have read the schema and are waiting.
func (d *database) listeners() []string {
	d.t.Helper()
	return d.query(`SELECT pid FROM pg_stat_activity WHERE application_name = 'mete rules' AND state = 'idle'
		AND (query = 'commit' OR query LIKE 'SELECT coalesce(%"` + d.schema + `"%')`)
}

func TestWatch_TellsEveryNodeWithinASecond(t *testing.T) {
	at, schema := proctest.PostgresURL(t), proctest.PostgresSchema(t)
	a := follow(t, at, schema, rules.Config{Poll: time.Hour})
	b := follow(t, at, schema, rules.Config{Poll: time.Hour})
	a.listening(2)
	least := map[*follower]time.Duration{a: patience, b: patience} // a slow machine is sometimes late
	for i, sql := range []string{
		`INSERT INTO {schema}.rate_limit_rule (name, key_pattern, scope, rate_per_second, burst_capacity) VALUES ('r', 'user:{user_id}', 'user', 1, 5)`,
		`UPDATE {schema}.rate_limit_rule SET burst_capacity = 6`,
		`UPDATE {schema}.rate_limit_attribute SET attribute = 'header:x-user' WHERE name = 'user_id'`,
		`INSERT INTO {schema}.rate_limit_rule (name, key_pattern, scope, rate_per_second, burst_capacity) VALUES ('s', 'global', 'global', 1, 5)`,
		`DELETE FROM {schema}.rate_limit_rule WHERE name = 'r'`,
	} {
		a.must(sql)
		changed := time.Now()
		for _, f := range []*follower{a, b} {
			u := f.next()
			if want := a.rows().Revision; u.err != nil || u.revision != want || want < int64(i+2) || u.policy.Version() != want {
				t.Fatalf("after %s: revision %d, %v; want a policy of revision %d", sql, u.revision, u.err, want)
			}
			least[f] = min(least[f], u.at.Sub(changed))
		}
	}
	for _, late := range least {
		if late > soon {
			t.Errorf("told after %v and more", late)
		}
	}
	a.must(`TRUNCATE {schema}.rate_limit_rule`)
	if u := a.next(); u.err == nil || !strings.Contains(u.err.Error(), "no active rule") {
		t.Errorf("after TRUNCATE: %v, want a mistake", u.err)
	}
}

// TestWatch_Transactions proves that a transaction of many statements is one update, and a rollback is none.
func TestWatch_Transactions(t *testing.T) {
	f := follow(t, proctest.PostgresURL(t), proctest.PostgresSchema(t), rules.Config{Poll: time.Hour})
	f.listening(1)
	const insert = `INSERT INTO {schema}.rate_limit_rule (key_pattern, scope, rate_per_second, burst_capacity) VALUES `
	f.must(`BEGIN; ` + insert + `('global', 'global', 1, 1); ROLLBACK`)
	f.must(`BEGIN; ` + insert + `('global', 'global', 1, 1); ` + insert + `('ip:{ip}', 'ip', 1, 1); ` + insert + `('user:{user_id}', 'user', 1, 1); COMMIT`)
	if u := f.next(); u.err != nil || len(u.policy.Rules()) != 3 {
		t.Errorf("update %+v, want a policy of 3 rules", u)
	}
	f.must(insert + `('endpoint:/', 'endpoint', 1, 1)`)
	if u := f.next(); u.err != nil || len(u.policy.Rules()) != 4 {
		t.Errorf("update %+v, want a policy of 4 rules, and none in between", u)
	}
}

// TestWatch_PollSeesTheRest proves that polling finds changes without a notification.
func TestWatch_PollSeesTheRest(t *testing.T) {
	f := follow(t, proctest.PostgresURL(t), proctest.PostgresSchema(t), rules.Config{Poll: 10 * time.Millisecond})
	f.source()
	f.next()
	f.must(`BEGIN; ALTER TABLE {schema}.rate_limit_rule DISABLE TRIGGER USER;
		UPDATE {schema}.rate_limit_rule SET burst_capacity = 7; UPDATE {schema}.rate_limit_revision SET revision = revision + 5; COMMIT`)
	if u := f.next(); u.err != nil || u.revision != 7 {
		t.Errorf("update %+v, want a policy of revision 7", u)
	}
}

// TestWatch_OddSchema uses a schema name that must be quoted.
func TestWatch_OddSchema(t *testing.T) {
	p := proctest.StartPostgres(t)
	d := openDatabase(t, p.URL(), `Odd "schéma"`, rules.Config{})
	_, since, _ := d.Load(t.Context(), options)
	updates := make(chan error, 10)
	ctx, stop := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	watching.Go(func() {
		d.Watch(ctx, since, options, func(_ *policy.Matcher, _ int64, err error) { updates <- err })
	})
	d.edit(func(s *rules.Set) error {
		s.Rules = append(s.Rules, rules.Rule{KeyPattern: "global", RatePerSecond: "1", BurstCapacity: "1", Active: true})
		return nil
	})
	select {
	case err := <-updates:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Error("no update")
	}
	stop()
	watching.Wait()
}

// TestWatch_BrokenRowIsTold reports an invalid row once per revision, and the next valid revision.
func TestWatch_BrokenRowIsTold(t *testing.T) {
	f := follow(t, proctest.PostgresURL(t), proctest.PostgresSchema(t), rules.Config{Poll: 10 * time.Millisecond})
	f.source()
	f.next()
	f.must(`UPDATE {schema}.rate_limit_rule SET spec = jsonb_set(spec, '{mode}', '"shadwo"') WHERE name = 'user-pro'`)
	if u := f.next(); u.policy != nil || u.err == nil || !strings.Contains(u.err.Error(), `rule 2 "user-pro": spec/mode: mode must be`) {
		t.Errorf("update %+v, want the mistake with its row", u)
	}
	f.must(`UPDATE {schema}.rate_limit_rule SET spec = spec - 'mode' WHERE name = 'user-pro'`)
	if u := f.next(); u.err != nil || u.policy == nil {
		t.Errorf("update %+v, want a policy: a mistake is told once", u)
	}
}

// TestWatch_ConnectionCut proves that no change is missed while the connection is lost and restored.
func TestWatch_ConnectionCut(t *testing.T) {
	f := follow(t, proctest.PostgresURL(t), proctest.PostgresSchema(t), rules.Config{Poll: time.Hour})
	f.source()
	f.next()
	for i := range 3 {
		var there []string
		f.eventually("a connection waits for changes", func() bool {
			there = f.listeners()
			return len(there) == 1
		})
		pid := there[0]
		f.must(`DO $$ BEGIN
			PERFORM pg_terminate_backend(` + pid + `);
			UPDATE {schema}.rate_limit_rule SET priority = priority + 1;
		END $$`)
		if u := f.next(); u.err != nil {
			t.Errorf("update %d: %v", i, u.err)
		}
	}
	f.eventually("both are logged", func() bool {
		return f.log.count("following rules in the database again") == 3 && f.log.count("cannot follow rules") == 3
	})
}

func TestWatch_ServerRestarts(t *testing.T) {
	p := proctest.StartPostgres(t)
	f := follow(t, p.URL(), "mete", rules.Config{Poll: time.Hour})
	f.source()
	f.next()
	p.Kill()
	f.eventually("the log says that nothing answers", func() bool { return f.log.count("cannot follow rules") == 1 })
	p.Restart()
	f.must(`UPDATE {schema}.rate_limit_rule SET burst_capacity = 7`)
	if u := f.next(); u.err != nil {
		t.Error(u.err)
	}
	if f.log.count("cannot follow rules") != 1 {
		t.Errorf("the log says more than once that nothing answers:\n%s", f.log)
	}
}

// TestWatch_ServerHangs proves that polling detects a dead connection.
func TestWatch_ServerHangs(t *testing.T) {
	p := proctest.StartPostgres(t)
	f := follow(t, p.URL(), "mete", rules.Config{Poll: 50 * time.Millisecond})
	f.source()
	f.next()
	p.Pause()
	f.eventually("the log says that nothing answers", func() bool { return f.log.count("cannot follow rules") == 1 })
	p.Resume()
	f.must(`UPDATE {schema}.rate_limit_rule SET burst_capacity = 7`)
	if u := f.next(); u.err != nil {
		t.Error(u.err)
	}
}

// TestWatch_Pooler proves that polling is faster behind a pooler, which delivers no notifications, and that no
// pooled connection listens.
func TestWatch_Pooler(t *testing.T) {
	p := proctest.StartPostgres(t)
	b := proctest.StartPgBouncer(t, p.URL())
	f := follow(t, b.URL(), "mete", rules.Config{Poll: time.Hour})
	f.eventually("the log says so", func() bool { return f.log.count("through a pooler or from a replica") == 1 })
	f.source()
	f.next()
	late := patience
	for i := 0; i < 5 && late > soon; i++ { // a slow machine is sometimes late
		f.must(`UPDATE {schema}.rate_limit_rule SET burst_capacity = 7, priority = priority + 1`)
		changed := time.Now()
		u := f.next()
		if u.err != nil {
			t.Fatal(u.err)
		}
		late = u.at.Sub(changed)
	}
	if late > soon {
		t.Errorf("update after %v; want one within %v", late, soon)
	}
	direct := &database{t: t, url: p.URL(), schema: "mete"}
	if got := direct.query(`SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN%'`); len(got) != 0 {
		t.Errorf("%d connections of the pooler listen", len(got))
	}
	if _, err := f.Edit(t.Context(), false, func(s *rules.Set) error { s.Rules[0].BurstCapacity = "9"; return nil }); err != nil {
		t.Errorf("an edit through the pooler: %v", err)
	}
	b.Kill()
	f.eventually("the log says that nothing answers", func() bool { return f.log.count("cannot follow rules") == 1 })
	b.Restart()
	f.must(`UPDATE {schema}.rate_limit_rule SET burst_capacity = 8`)
	for u := f.next(); u.err == nil && u.policy.Version() < f.rows().Revision; u = f.next() {
	}
}

// A logBuffer is a log that can be read while it is written.
type logBuffer struct {
	mu  sync.Mutex // protects the field below
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// count returns the number of occurrences of a text in the log.
func (b *logBuffer) count(text string) int { return strings.Count(b.String(), text) }

// TestWatch_NotifyFlood proves that a flood of notifications, which any user can send, causes few reads.
func TestWatch_NotifyFlood(t *testing.T) {
	p := proctest.StartPostgres(t)
	f := follow(t, p.URL(), "mete", rules.Config{Poll: time.Hour})
	f.source()
	f.next()
	const n = 50_000
	f.must("SELECT count(pg_notify('{schema}', i::text)) FROM generate_series(1, $1::int) i", n)
	f.must("UPDATE {schema}.rate_limit_rule SET burst_capacity = 7")
	if u := f.next(); u.err != nil {
		t.Errorf("update %+v, want a policy", u)
	}
	// The server updates the statistics of a connection when it is idle.
	f.eventually("the watcher rests", func() bool {
		return len(f.query(`SELECT pid FROM pg_stat_activity WHERE application_name = 'mete rules' AND state = 'idle'
			AND state_change < clock_timestamp() - interval '1.5 s'`)) == 1
	})
	looks, err := strconv.Atoi(strings.Join(f.query("SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"), ""))
	if err != nil {
		t.Fatal(err)
	}
	if looks > n/10 {
		t.Errorf("%d transactions after %d notifications, want few", looks, n)
	}
}
