// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	_ "embed" // of the script
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/lease"
	"github.com/redis/rueidis"
)

//go:embed take.lua
var script string

// Defaults and bounds of a [Config].
const (
	DefaultTimeout     = time.Second
	DefaultMaxBatch    = 512
	DefaultMaxQueue    = 1 << 14
	DefaultMaxInFlight = 16

	maxKeys      = 2048 // about, in one call
	bucketPrefix = "tb:"
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
	// [mete.ErrOverloaded].
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

// A Store keeps buckets in Redis.
type Store struct {
	client       rueidis.Client
	config       Config
	script       *rueidis.Lua
	only         *lane                        // nil in a cluster
	lanes        *[slots]atomic.Pointer[lane] // nil but in a cluster
	undo         undoer
	leases       *lease.Borrower // nil under virtual time
	bucketPrefix string
	end          sync.Once
	ending       chan struct{} // closed by Close
	closed       atomic.Bool   // nothing is asked any more
	calls        sync.WaitGroup
	counts       counts
}

var (
	errClosed = errors.New("store is closed")
	errLate   = fmt.Errorf("no answer in time: %w", context.DeadlineExceeded)
)

// New returns a store over client, which stays the caller's.
func New(client rueidis.Client, config Config) (*Store, error) {
	if client == nil {
		return nil, errors.New("redisstore: new: client is required")
	}
	if before, rest, _ := strings.Cut(config.Prefix, "{"); strings.ContainsAny(config.Prefix, "{}") {
		tag, after, ok := strings.Cut(rest, "}")
		if !ok || tag == "" || strings.ContainsAny(before+tag+after, "{}") {
			return nil, fmt.Errorf("redisstore: new: prefix %q: braces are for one hash tag, as in {mete}:", config.Prefix)
		}
	}
	for _, f := range []struct {
		name  string
		value *int
		or    int
	}{
		{"MaxBatch", &config.MaxBatch, DefaultMaxBatch},
		{"MaxQueue", &config.MaxQueue, DefaultMaxQueue},
		{"MaxInFlight", &config.MaxInFlight, DefaultMaxInFlight},
	} {
		if *f.value < 0 {
			return nil, fmt.Errorf("redisstore: new: %s: %d: must not be below 0", f.name, *f.value)
		}
		if *f.value == 0 {
			*f.value = f.or
		}
	}
	if config.Timeout < 0 {
		return nil, fmt.Errorf("redisstore: new: Timeout: %v: must not be below 0", config.Timeout)
	}
	if config.Timeout == 0 {
		config.Timeout = DefaultTimeout
	}
	s := &Store{
		client: client, config: config, script: rueidis.NewLuaScript(script),
		bucketPrefix: config.Prefix + bucketPrefix, ending: make(chan struct{}),
	}
	s.undo.store = s
	if client.Mode() == rueidis.ClientModeCluster {
		s.lanes = new([slots]atomic.Pointer[lane])
	} else {
		s.only = &lane{store: s}
	}
	if err := s.lends(); err != nil {
		return nil, fmt.Errorf("redisstore: new: %w", err)
	}
	return s, nil
}

// now is the virtual time, −1 where there is none.
func (s *Store) now() int64 {
	if s.config.Now == nil {
		return -1
	}
	return int64(s.config.Now())
}

// Ping implements [mete.Pinger].
func (s *Store) Ping(ctx context.Context) error {
	return s.client.Do(ctx, s.client.B().Ping().Build()).Error()
}
