// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"errors"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/lane"
)

const (
	DefaultSchema      = "mete"
	DefaultTimeout     = time.Second
	DefaultMaxBatch    = 512
	DefaultMaxQueue    = 1 << 14
	DefaultMaxInFlight = 4
)

// Config holds the settings of a [Store]. The zero value selects the defaults.
type Config struct {
	// Schema contains the tables: see [Migrate]. Empty is [DefaultSchema].
	Schema string

	// Prefix begins all keys, so that several limiters can share one schema.
	Prefix string

	// Durable selects a logged table for buckets, which survives a crash of the server and is replicated. The
	// default is an unlogged table, which is several times cheaper to write. It is empty after a crash or a
	// failover: all buckets are full then.
	Durable bool

	// Now, if set, replaces the server's clock in tests and replays. Rows then expire after an hour of real time.
	Now func() bucket.Instant

	// Timeout bounds one call. 0 is [DefaultTimeout].
	Timeout time.Duration

	// MaxBatch bounds the takes per call, MaxQueue the waiting takes, and MaxInFlight the concurrent calls. Each
	// call uses a connection of the pool. 0 selects the defaults. A take that finds the queue full fails with
	// [store.ErrOverloaded].
	MaxBatch, MaxQueue, MaxInFlight int

	// SweepEvery is the interval between sweeps, which remove the rows of full buckets in small batches. 0 is
	// [DefaultSweepEvery]. A negative value disables sweeps in this process.
	SweepEvery time.Duration
}

// withDefaults validates c and fills in its defaults.
func (c Config) withDefaults() (Config, error) {
	if c.Schema == "" {
		c.Schema = DefaultSchema
	}
	b, err := lane.Bounds{MaxBatch: c.MaxBatch, MaxQueue: c.MaxQueue, MaxInFlight: c.MaxInFlight, Timeout: c.Timeout}.
		WithDefaults(lane.Bounds{MaxBatch: DefaultMaxBatch, MaxQueue: DefaultMaxQueue, MaxInFlight: DefaultMaxInFlight, Timeout: DefaultTimeout})
	if err != nil {
		return c, err
	}
	c.MaxBatch, c.MaxQueue, c.MaxInFlight, c.Timeout = b.MaxBatch, b.MaxQueue, b.MaxInFlight, b.Timeout
	if c.SweepEvery == 0 {
		c.SweepEvery = DefaultSweepEvery
	}
	if len(c.Prefix) > maxPrefixBytes {
		return c, errors.New("prefix: longer than 256 bytes")
	}
	return c, nil
}

// maxPrefixBytes bounds a prefix so that keys fit in an index.
const maxPrefixBytes = 256
