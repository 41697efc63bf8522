// SPDX-License-Identifier: Apache-2.0

package pgstore

import (
	"errors"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/lane"
)

// Defaults and bounds of a [Config].
const (
	DefaultSchema      = "mete"
	DefaultTimeout     = time.Second
	DefaultMaxBatch    = 512
	DefaultMaxQueue    = 1 << 14
	DefaultMaxInFlight = 4
)

// Config are the settings of a [Store]. The zero Config is sound.
type Config struct {
	// Schema is where the tables are: see [Migrate]. Empty is [DefaultSchema].
	Schema string

	// Prefix is what all keys begin with, for several limiters in one schema.
	Prefix string

	// Durable keeps the buckets in a logged table, which survives a crash of the
	// server and is there on its replicas. Otherwise they are in an unlogged one,
	// which is several times cheaper to write, and empty after a crash or a
	// failover: then all buckets are full.
	Durable bool

	// Now, if set, takes the place of the server's clock: for tests and replays.
	// States then live for an hour, whatever Now says.
	Now func() bucket.Instant

	// Timeout is the longest that one call may take. 0 is [DefaultTimeout].
	Timeout time.Duration

	// MaxBatch bounds the takes that go in one call, MaxQueue those that wait for
	// one, and MaxInFlight the calls at a time, each of which needs a connection of
	// the pool. 0 are the defaults. A take that finds the queue full fails with
	// [store.ErrOverloaded].
	MaxBatch, MaxQueue, MaxInFlight int

	// SweepEvery is the time between two looks for rows of buckets that are full,
	// which are removed a few at a time. 0 is [DefaultSweepEvery]; below 0, others
	// must do so.
	SweepEvery time.Duration
}

// checked returns c with its defaults.
func (c Config) checked() (Config, error) {
	if c.Schema == "" {
		c.Schema = DefaultSchema
	}
	b, err := lane.Bounds{MaxBatch: c.MaxBatch, MaxQueue: c.MaxQueue, MaxInFlight: c.MaxInFlight, Timeout: c.Timeout}.
		Or(lane.Bounds{MaxBatch: DefaultMaxBatch, MaxQueue: DefaultMaxQueue, MaxInFlight: DefaultMaxInFlight, Timeout: DefaultTimeout})
	if err != nil {
		return c, err
	}
	c.MaxBatch, c.MaxQueue, c.MaxInFlight, c.Timeout = b.MaxBatch, b.MaxQueue, b.MaxInFlight, b.Timeout
	if c.SweepEvery == 0 {
		c.SweepEvery = DefaultSweepEvery
	}
	if len(c.Prefix) > maxPrefixBytes {
		return c, errors.New("prefix: too long")
	}
	return c, nil
}

// maxPrefixBytes bounds a prefix, so that keys fit in an index.
const maxPrefixBytes = 256
