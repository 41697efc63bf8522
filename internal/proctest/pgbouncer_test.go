// SPDX-License-Identifier: Apache-2.0

package proctest_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/metehq/mete/internal/proctest"
)

// psqlAt runs a statement wherever a URL leads.
func psqlAt(t *testing.T, url, sql string) (string, error) {
	t.Helper()
	text, err := exec.Command(proctest.Find(t, "psql", "postgresql-client"), "-XAtq", "-d", url, "-c", sql).CombinedOutput()
	return strings.TrimSpace(string(text)), err
}

func TestPgBouncer(t *testing.T) {
	p := proctest.StartPostgres(t)
	b := proctest.StartPgBouncer(t, p.URL(), "default_pool_size=1")
	const who = "SELECT current_user, current_database(), pg_backend_pid()"
	first, err := psqlAt(t, b.URL(), who)
	if err != nil || !strings.HasPrefix(first, "postgres|postgres|") {
		t.Errorf("by way of the pooler: %q, %v", first, err)
	}
	if again, err := psqlAt(t, b.URL(), who); err != nil || again != first {
		t.Errorf("asked again: %q, %v; want the one connection that there is, %q", again, err, first)
	}
	// The pooler knows no settings of sessions but a few.
	if text, err := psqlAt(t, b.URL()+"&options=-csearch_path%3Dx", "SELECT 1"); err == nil || !strings.Contains(text, "unsupported startup parameter") {
		t.Errorf("with a setting: %q, %v; want it refused", text, err)
	}
	b.Kill()
	if text, err := psqlAt(t, b.URL(), who); err == nil {
		t.Errorf("after Kill: %q, want an error", text)
	}
	b.Restart()
	if text, err := psqlAt(t, b.URL(), who); err != nil {
		t.Errorf("after Restart: %q, %v", text, err)
	}
}

// A connection leased for a transaction keeps its session settings.
func TestPgBouncer_LendsForTransactions(t *testing.T) {
	b := proctest.StartPgBouncer(t, proctest.StartPostgres(t).URL(), "default_pool_size=1")
	if text, err := psqlAt(t, b.URL(), "SET work_mem = '7MB'"); err != nil {
		t.Fatalf("%s, %v", text, err)
	}
	if got, err := psqlAt(t, b.URL(), "SHOW work_mem"); err != nil || got != "7MB" {
		t.Errorf("setting of another client: %q, %v; want it seen, as nothing is reset", got, err)
	}
}

func TestStartPgBouncer_BadURL(t *testing.T) {
	for _, bad := range []string{"", "postgres://:secret@h", "postgres://secret@h/d", "postgres://h:1/d", "postgres://secret@%zz:1"} {
		failed := record(t, func(t testing.TB) { proctest.StartPgBouncer(t, bad) })
		if !strings.Contains(failed, "want the URL of a server") || strings.Contains(failed, "secret") {
			t.Errorf("StartPgBouncer(%q): test log %q, want the form and no secret", bad, failed)
		}
	}
}
