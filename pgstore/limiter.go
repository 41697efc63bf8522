// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/metehq/mete"
	"github.com/metehq/mete/guard"
	"github.com/metehq/mete/internal/opening"
	"github.com/metehq/mete/policy"
)

// NewLimiter connects to the PostgreSQL at a URL (see [ParseURL]) and returns a limiter that decides by m. The
// caller must close the limiter with [mete.Limiter.Close]. NewLimiter creates missing tables, as [Migrate] does.
// All processes with one URL share their buckets, and hash keys with one secret that PostgreSQL keeps.
//
// During an outage, a circuit breaker lets calls fail at once. Buckets in memory then decide for rules with
// on_store_error: local, with this process's share of each limit. They also decide for the limits of httplimit,
// grpclimit and [mete.Request.Charges]. When PostgreSQL answers again, it is charged for the tokens that were
// spent in memory. A key is charged before its next take, and all other keys within about a second. Close spends
// at most 3 seconds on these charges.
//
// NewLimiter tries once, until ctx ends. Errors contain the server's address and the remedy, but no password. If
// PostgreSQL does not answer, the error wraps [store.ErrUnavailable]. If m is nil, it wraps policy.ErrRequired.
// If the processes that share this schema and prefix use a different hash key, it wraps policy.ErrHashKey: see
// [Store.CheckHashKey].
//
// For other settings, call [Open] and [Node.NewLimiter].
func NewLimiter(ctx context.Context, rawURL string, m *policy.Matcher) (*mete.Limiter, error) {
	if m == nil {
		return nil, fmt.Errorf("pgstore: new limiter: %w; to charge without a policy, call mete.New", policy.ErrRequired)
	}
	node, err := Open(ctx, rawURL)
	if err != nil {
		return nil, explain(rawURL, err)
	}
	l, err := node.NewLimiter(ctx, m, mete.Config{OnStoreError: policy.OnStoreErrorLocal})
	if err != nil {
		return nil, errors.Join(err, node.Close())
	}
	return l, nil
}

// explain adds the server's address and the remedy to an error of [Open].
func explain(rawURL string, err error) error {
	options, _, invalid := ParseURL(rawURL)
	server := ""
	if invalid == nil {
		server = serverAddress(options)
	}
	return fmt.Errorf("pgstore: new limiter: %w", opening.Explain(rawURL, invalid, server, err))
}

func serverAddress(options *pgxpool.Config) string {
	c := options.ConnConfig
	return fmt.Sprintf("%s, port %d, database %q", c.Host, c.Port, c.Database)
}

// NewLimiter returns a limiter over n that decides by m, with the caller's settings: see [guard.NewLimiter]. The
// limiter owns n, unless NewLimiter fails.
func (n *Node) NewLimiter(ctx context.Context, m *policy.Matcher, config mete.Config) (*mete.Limiter, error) {
	l, err := guard.NewLimiter(ctx, n, m, config)
	if err != nil {
		return nil, fmt.Errorf("pgstore: new limiter: %w", err)
	}
	return l, nil
}
