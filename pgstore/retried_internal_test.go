// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/store"
)

// TestRetried proves that only statements that PostgreSQL rolled back are retried, a bounded number of times, and
// never in a caller's transaction.
func TestRetried(t *testing.T) {
	conn, err := pgx.Connect(t.Context(), proctest.PostgresURL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	refused := func(code string) error { return &pgconn.PgError{Severity: "ERROR", Code: code} }
	for name, tt := range map[string]struct {
		joined bool
		err    error
		fails  int // this often, then it succeeds
		want   int
		spent  store.Spending
	}{
		"at once":              {false, nil, 0, 1, 0},
		"after two deadlocks":  {false, refused("40P01"), 2, 3, 0},
		"deadlocks for ever":   {false, refused("40P01"), 1 << 30, maxRetries, mete.NotSpent},
		"conflicts for ever":   {false, refused("40001"), 1 << 30, maxRetries, mete.NotSpent},
		"another error":        {false, refused("53100"), 1 << 30, 1, mete.NotSpent},
		"a lost answer":        {false, errors.New("reset by peer"), 1 << 30, 1, mete.MaybeSpent},
		"within a transaction": {true, refused("40001"), 1 << 30, 1, mete.NotSpent},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Store{joined: tt.joined}
			tries := 0
			err := s.retry(t.Context(), conn, func(context.Context, *pgx.Conn) error {
				if tries++; tries <= tt.fails {
					return tt.err
				}
				return nil
			})
			if tries != tt.want {
				t.Errorf("%d tries, want %d", tries, tt.want)
			}
			if failed := tt.fails > maxRetries; failed != (err != nil) || failed && mete.Spent(err) != tt.spent {
				t.Errorf("error %v, want one: %t, that says %v", err, failed, tt.spent)
			}
		})
	}
}
