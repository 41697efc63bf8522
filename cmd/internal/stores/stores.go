// SPDX-License-Identifier: Apache-2.0

// Package stores is the table of the kinds of stores that commands can use. A new kind is
// one file with its [Kind], and one line in [Kinds].
package stores

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/metrics"
	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/store"
)

// Kinds are all kinds of stores.
var Kinds = []Kind{memory, redis, postgres}

// A Kind is one kind of store.
type Kind struct {
	// Scheme is the family of its URLs, and its name in metrics, log lines and JSON.
	Scheme storeurl.Scheme

	// Shared reports that several processes use one store of this kind, over a network. The
	// server puts a circuit breaker in front of it.
	Shared bool

	// Open opens the store that a URL names. It tries once. If nothing answers, the error
	// wraps [store.ErrUnavailable].
	Open func(context.Context, *storeurl.URL, Options) (Store, error)
}

// Options change how a store is opened. The zero Options are for a server.
type Options struct {
	Log *slog.Logger // nil: nothing is logged

	// Now is the clock. If it is nil, the store has its own.
	Now func() bucket.Instant

	// ReadOnly opens a store to look at it: nothing is made or changed there.
	ReadOnly bool

	// Own keeps the buckets under a new prefix, apart from all others. [Store.Clean] removes
	// them. A call may take as long as Timeout, unless the URL sets a timeout.
	Own     bool
	Timeout time.Duration
}

// joins reports whether the store is opened as one of the servers that share it.
func (o *Options) joins() bool { return o.Now == nil && !o.ReadOnly && !o.Own }

// own prepares the settings of a store whose buckets are apart from all others.
func (o *Options) own(prefix *string, timeout *time.Duration) {
	if !o.Own {
		return
	}
	if *timeout == 0 {
		*timeout = o.Timeout
	}
	*prefix += "replay:" + rand.Text() + ":"
}

// A connection has what the kinds of shared stores have in common.
type connection struct {
	nodes func() int
	clean func(context.Context) error
	close func() error
}

// Nodes implements [Store].
func (c *connection) Nodes() int { return c.nodes() }

// Start implements [Store].
func (c *connection) Start(context.Context) error { return nil }

// Clean implements [Store].
func (c *connection) Clean(ctx context.Context) error { return c.clean(ctx) }

// alone is the number of processes that share buckets under a prefix of their own.
func alone() int { return 1 }

// A Store is an open store.
type Store interface {
	mete.Store
	store.Pinger
	store.KeyDeriver

	// Nodes returns the number of processes that share the store, this one included.
	Nodes() int

	// Documents returns the place for overrides, or nil if they cannot outlive the process.
	Documents() store.Documents

	// Metrics returns the source of its metrics.
	Metrics() metrics.Source

	// Start begins background work, such as saves. Without it, Close saves nothing.
	Start(ctx context.Context) error

	// Clean removes the buckets of a store that was opened with Options.Own. It is the last
	// call before Close.
	Clean(ctx context.Context) error

	// Close releases the store. An error reports that state was lost.
	Close() error
}

// Open opens the store that a URL names, and returns its kind with it.
func Open(ctx context.Context, u *storeurl.URL, o Options) (Store, *Kind, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	for i := range Kinds {
		if k := &Kinds[i]; k.Scheme == u.Scheme {
			s, err := k.Open(ctx, u, o)
			return s, k, err
		}
	}
	return nil, nil, fmt.Errorf("stores: no kind of store has the URL %s", u)
}
