// SPDX-License-Identifier: Apache-2.0

package proctest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// PostgresVar is the environment variable with the database of [PostgresURL], such as
// postgres://user@host:port/database.
const PostgresVar = "METE_TEST_POSTGRES"

// PostgresURL returns the URL of a database for a test that breaks nothing and uses only its own schemas: see
// [PostgresSchema]. The database is the one in METE_TEST_POSTGRES, or one of a server that all tests of this
// process share.
func PostgresURL(t testing.TB) string {
	t.Helper()
	named := os.Getenv(PostgresVar)
	if named == "" {
		shared, err := sharedPostgres()
		if err != nil {
			t.Fatal(err)
		}
		return shared
	}
	u, err := url.Parse(named)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" || u.Host == "" {
		t.Fatalf("%s: want postgres://user@host:port/database", PostgresVar) // and may hold a password
	}
	return named
}

// PostgresSchema returns the name of a new schema in the database of [PostgresURL]. The test's cleanup drops it.
func PostgresSchema(t testing.TB) string {
	t.Helper()
	db := PostgresURL(t)
	name := "test_" + strings.ToLower(rand.Text())
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), psqlTimeout)
		defer cancel()
		if _, err := psql(ctx, db, "SET client_min_messages = warning; DROP SCHEMA IF EXISTS "+name+" CASCADE"); err != nil {
			t.Errorf("drop schema %s: %v", name, err)
		}
	})
	return name
}

// sharedPostgres starts the server that lives as long as the process. The shell of postgresHome ends it.
var sharedPostgres = sync.OnceValues(func() (string, error) {
	dir, err := newPostgresDir("")
	if err != nil {
		return "", err
	}
	addr, err := reserveAddrForGood()
	if err != nil {
		return "", err
	}
	cmd, err := postgresCommand(dir, addr, []string{"max_connections=200"})
	if err != nil {
		return "", err
	}
	output, err := os.Create(filepath.Join(dir, "output"))
	if err != nil {
		return "", err
	}
	defer output.Close()
	cmd.Stdout, cmd.Stderr = output, output
	setProcessGroup(cmd)
	if err := cmd.Start(); err != nil {
		return "", fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	go cmd.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	at := postgresURL(addr)
	if err := Poll(ctx, func(ctx context.Context) error { return checkAnswer(ctx, addr, at) }); err != nil {
		text, _ := os.ReadFile(output.Name())
		return "", fmt.Errorf("%s is not ready: %w\n%s", cmd.Path, err, text)
	}
	return at, nil
})
