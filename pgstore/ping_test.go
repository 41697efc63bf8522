// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/pgstore"
	"github.com/metehq/mete/store"
)

// TestPing proves that a reachable server is not enough: New does not create the schema.
func TestPing(t *testing.T) {
	pool := newPool(t)
	config := pgstore.Config{Schema: proctest.PostgresSchema(t), SweepEvery: -1}
	s := open(t, pool, config)
	if err := s.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), "Migrate") {
		t.Errorf("without a schema: %v, want an error that says to migrate", err)
	}
	if err := pgstore.Migrate(t.Context(), pool, config.Schema); err != nil {
		t.Fatal(err)
	}
	if err := s.Ping(t.Context()); err != nil {
		t.Errorf("with a schema: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Ping(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of its context: %v", err)
	}
}

func TestTakeTx_Nil(t *testing.T) {
	pool := newPool(t)
	s := open(t, pool, pgstore.Config{Schema: migrated(t, pool), SweepEvery: -1})
	charges := []store.Charge{{Key: "k", Limit: tokens(t, bucket.Token, "1/1s"), Cost: 1}}
	_, _, err := s.TakeTx(t.Context(), nil, nil, charges, mete.Mode{})
	if err == nil || mete.Spent(err) != mete.NotSpent {
		t.Errorf("TakeTx: %v, want an error, not spent", err)
	}
	if _, _, err := s.Take(pgstore.WithTx(t.Context(), nil), nil, charges, mete.Mode{}); err == nil {
		t.Error("Take with no transaction in WithTx: no error")
	}
}
