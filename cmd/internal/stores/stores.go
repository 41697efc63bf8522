// SPDX-License-Identifier: Apache-2.0

// Package stores opens the store that a URL names. To add a kind of store, add a file with its [Kind] and a line
// to [Kinds].
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

var Kinds = []Kind{memory, redis, postgres}

type Kind struct {
	// Scheme identifies the kind in URLs, metrics, log lines and JSON.
	Scheme storeurl.Scheme

	// Shared means that several processes use the store over a network. The server then adds a circuit breaker.
	Shared bool

	// Open opens the store at a URL without retries. If the store does not answer, the error wraps
	// [store.ErrUnavailable].
	Open func(context.Context, *storeurl.URL, Options) (Store, error)
}

// Options change how a store is opened. The zero Options are for a server.
type Options struct {
	Log *slog.Logger // nil disables logging

	// Now is the clock. Nil selects the clock of the store.
	Now func() bucket.Instant

	// ReadOnly opens a store for reading. It does not create or change anything.
	ReadOnly bool

	// Private stores the buckets under a new, private prefix. [Store.Clean] removes them. Timeout bounds a call unless
	// the URL sets a timeout.
	Private bool
	Timeout time.Duration
}

// joins reports whether the process joins the servers that share the store.
func (o *Options) joins() bool { return o.Now == nil && !o.ReadOnly && !o.Private }

// makePrivate sets the prefix and the timeout of a private store.
func (o *Options) makePrivate(prefix *string, timeout *time.Duration) {
	if !o.Private {
		return
	}
	if *timeout == 0 {
		*timeout = o.Timeout
	}
	*prefix += "replay:" + rand.Text() + ":"
}

// A connection holds the parts that all shared stores have in common.
type connection struct {
	nodes func() int
	clean func(context.Context) error
	close func() error
}

func (c *connection) Nodes() int { return c.nodes() }

func (c *connection) Start(context.Context) error { return nil }

func (c *connection) Clean(ctx context.Context) error { return c.clean(ctx) }

// oneNode returns 1, the number of processes that use a private prefix.
func oneNode() int { return 1 }

type Store interface {
	mete.Store
	store.Pinger
	store.KeyDeriver

	// Nodes returns the number of processes that share the store, including this one.
	Nodes() int

	// Documents returns the storage for overrides, or nil if the store does not persist them.
	Documents() store.Documents

	// Metrics returns the metrics of the store.
	Metrics() metrics.Source

	// Start starts background work such as saves. Without Start, Close saves nothing.
	Start(ctx context.Context) error

	// Clean removes the buckets of a store with Options.Private. Only Close may follow it.
	Clean(ctx context.Context) error

	// Close releases the store. An error means that state was lost.
	Close() error
}

// Open opens the store at a URL and returns its kind.
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
	return nil, nil, fmt.Errorf("stores: unknown kind of store: %s", u)
}
