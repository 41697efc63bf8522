// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"fmt"
	"strings"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/lane"
)

// Defaults and bounds of a [Config].
const (
	DefaultTimeout     = time.Second
	DefaultMaxBatch    = 512
	DefaultMaxQueue    = 1 << 14
	DefaultMaxInFlight = 16

	maxKeys = 2048 // about, in one call
)

// Config are the settings of a [Store]. The zero Config is sound.
type Config struct {
	// Prefix is what all keys begin with. In a cluster a hash tag in it, as in
	// {mete}:, keeps all buckets in one slot, so that every take is one step. It has
	// no other braces.
	Prefix string

	// Now, if set, takes the place of the server's clock: for tests and replays.
	// States then live for an hour, whatever Now says.
	Now func() bucket.Instant

	// Timeout is the longest that one call may take. 0 is [DefaultTimeout].
	Timeout time.Duration

	// MaxBatch bounds the takes that go in one call, MaxQueue those that wait for
	// one, and MaxInFlight the calls on the wire; in a cluster, each for every
	// slot. 0 are the defaults. A take that finds the queue full fails with
	// [store.ErrOverloaded].
	MaxBatch, MaxQueue, MaxInFlight int

	// LeaseShare is the most of a bucket's capacity that this store takes in advance
	// where a charge says [mete.Charge.Leased]: 0 is a tenth. With N stores that do
	// so, up to N times as much is out of reach for those that need it, and twice
	// that is missing at the worst. LeaseMin is the least that is taken at once: 0
	// is one token. What was taken and not spent is given back after some tenths
	// of a second, and by Close; what a crash loses comes back by refilling.
	LeaseShare float64
	LeaseMin   bucket.Tokens
}

// checked returns c with its defaults.
func (c Config) checked() (Config, error) {
	if before, rest, tagged := strings.Cut(c.Prefix, "{"); tagged || strings.Contains(before, "}") {
		tag, after, ok := strings.Cut(rest, "}")
		if !ok || tag == "" || strings.ContainsAny(before+tag+after, "{}") {
			return c, fmt.Errorf("prefix %q: braces are for one hash tag, as in {mete}:name", c.Prefix)
		}
	}
	b, err := lane.Bounds{MaxBatch: c.MaxBatch, MaxQueue: c.MaxQueue, MaxInFlight: c.MaxInFlight, Timeout: c.Timeout}.
		Or(lane.Bounds{MaxBatch: DefaultMaxBatch, MaxQueue: DefaultMaxQueue, MaxInFlight: DefaultMaxInFlight, Timeout: DefaultTimeout})
	if err != nil {
		return c, err
	}
	c.MaxBatch, c.MaxQueue, c.MaxInFlight, c.Timeout = b.MaxBatch, b.MaxQueue, b.MaxInFlight, b.Timeout
	return c, nil
}
