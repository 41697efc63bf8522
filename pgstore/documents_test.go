// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/store"
	"github.com/metehq/mete/storetest"
)

func TestDocuments(t *testing.T) {
	t.Parallel()
	server := proctest.StartPostgres(t)
	pooler := proctest.StartPgBouncer(t, server.URL(), "default_pool_size=3")
	serializable := server.URL() + "&default_transaction_isolation=serializable"
	for name, url := range map[string]string{"direct": server.URL(), "pgbouncer": pooler.URL(), "serializable": serializable} {
		t.Run(name, func(t *testing.T) {
			pool := poolTo(t, url)
			name := migrated(t, poolTo(t, server.URL()))
			prefix := prefixes()
			storetest.RunDocuments(t, func(t *testing.T) func() store.Documents {
				config := pgstore.Config{Schema: name, Prefix: prefix() + "\x00\xff", Timeout: awhile}
				return func() store.Documents { return open(t, pool, config) }
			})
		})
	}
}

// TestDocuments_Crash proves that documents survive a crash, unlike buckets.
func TestDocuments_Crash(t *testing.T) {
	t.Parallel()
	p := proctest.StartPostgres(t)
	pool := poolTo(t, p.URL())
	config := pgstore.Config{Schema: migrated(t, pool), Timeout: awhile}
	revision, err := open(t, pool, config).SetDocument(t.Context(), "a", []byte("text"), 0)
	if err != nil {
		t.Fatal(err)
	}
	p.Kill()
	p.Restart()
	var data []byte
	var got int64
	for range 10 { // broken connections are detected one by one
		if data, got, err = open(t, pool, config).Document(t.Context(), "a", 0); err == nil {
			break
		}
	}
	if string(data) != "text" || got != revision || err != nil {
		t.Errorf("after a crash: %q, revision %d, %v; want the text, revision %d", data, got, err, revision)
	}
}

func TestDocuments_NoSchema(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), proctest.PostgresURL(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s := open(t, pool, pgstore.Config{Schema: "nowhere"})
	_, _, err = s.Document(t.Context(), "a", 0)
	failure, ok := errors.AsType[*mete.StoreError](err)
	if !ok || failure.Op != "document" || !strings.Contains(err.Error(), "call pgstore.Migrate") {
		t.Errorf("Document without a schema: %v, want a StoreError that says what to do", err)
	}
}
