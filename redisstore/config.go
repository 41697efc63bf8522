// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"fmt"
	"strings"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/lane"
)

const (
	DefaultTimeout     = time.Second
	DefaultMaxBatch    = 512
	DefaultMaxQueue    = 1 << 14
	DefaultMaxInFlight = 16

	maxKeys = 2048 // per call, approximately
)

// Config holds the settings of a [Store]. The zero value selects the defaults.
type Config struct {
	// Prefix begins the names of all keys. In a cluster, a hash tag such as {mete}: keeps all buckets in one
	// slot, so that every take is atomic. Braces are allowed for one hash tag only.
	Prefix string

	// Now, if set, replaces the server's clock in tests and replays. Keys then expire after an hour of real time.
	Now func() bucket.Instant

	// Timeout bounds one call to Redis. 0 is [DefaultTimeout].
	Timeout time.Duration

	// MaxBatch bounds the takes per call, MaxQueue the waiting takes, and MaxInFlight the calls in flight; in a
	// cluster, each bound holds per slot. 0 selects the defaults. A take that finds the queue full fails with
	// [store.ErrOverloaded].
	MaxBatch, MaxQueue, MaxInFlight int

	// LeaseShare is the largest part of a bucket's capacity that this store takes in advance for charges with
	// [mete.Charge.Leased]; 0 is a tenth. With N stores, up to N times this share is unavailable to other stores,
	// and in the worst case twice that. LeaseMin is the smallest lease; 0 is one token. The store returns unspent
	// tokens after some tenths of a second, and on Close. Tokens that a crash loses come back by refilling.
	LeaseShare float64
	LeaseMin   bucket.Tokens
}

// withDefaults validates c and fills in its defaults.
func (c Config) withDefaults() (Config, error) {
	if before, rest, tagged := strings.Cut(c.Prefix, "{"); tagged || strings.Contains(before, "}") {
		tag, after, ok := strings.Cut(rest, "}")
		if !ok || tag == "" || strings.ContainsAny(before+tag+after, "{}") {
			return c, fmt.Errorf("prefix %q: use braces only for one hash tag, as in {mete}:name", c.Prefix)
		}
	}
	b, err := lane.Bounds{MaxBatch: c.MaxBatch, MaxQueue: c.MaxQueue, MaxInFlight: c.MaxInFlight, Timeout: c.Timeout}.
		WithDefaults(lane.Bounds{MaxBatch: DefaultMaxBatch, MaxQueue: DefaultMaxQueue, MaxInFlight: DefaultMaxInFlight, Timeout: DefaultTimeout})
	if err != nil {
		return c, err
	}
	c.MaxBatch, c.MaxQueue, c.MaxInFlight, c.Timeout = b.MaxBatch, b.MaxQueue, b.MaxInFlight, b.Timeout
	return c, nil
}
