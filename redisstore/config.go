// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"fmt"
	"strings"
	"time"

	"github.com/metehq/mete/bucket"
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
	for _, f := range []struct {
		name  string
		value *int
		or    int
	}{
		{"MaxBatch", &c.MaxBatch, DefaultMaxBatch},
		{"MaxQueue", &c.MaxQueue, DefaultMaxQueue},
		{"MaxInFlight", &c.MaxInFlight, DefaultMaxInFlight},
	} {
		if *f.value < 0 {
			return c, fmt.Errorf("%s: %d: must not be below 0", f.name, *f.value)
		}
		if *f.value == 0 {
			*f.value = f.or
		}
	}
	if c.Timeout < 0 {
		return c, fmt.Errorf("timeout %v: must not be below 0", c.Timeout)
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	return c, nil
}
