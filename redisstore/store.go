// SPDX-License-Identifier: Apache-2.0

package redisstore

import (
	"context"
	_ "embed" // of the script
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/metehq/mete/internal/calls"
	"github.com/metehq/mete/internal/lane"
	"github.com/metehq/mete/internal/lease"
	"github.com/redis/rueidis"
)

// The script, in the order of its files.
var (
	//go:embed take.lua
	takeScript string
	//go:embed take_account.lua
	accountScript string
	//go:embed take_row.lua
	rowScript string
	//go:embed take_lease.lua
	leaseScript string
	//go:embed take_operation.lua
	operationScript string

	script = takeScript + accountScript + rowScript + leaseScript + operationScript
)

const bucketPrefix = "tb:" // of the keys of buckets, behind [Config.Prefix]

// A Store keeps buckets in Redis: it is a [mete.Store] and a [store.Pinger], made by
// [New] or [Open]. It is safe for concurrent use. While something is asked it has
// as many goroutines as calls on the wire, and while something is leased, a few
// more; [Store.Close] ends them.
type Store struct {
	client       rueidis.Client
	config       Config
	script       *rueidis.Lua
	cluster      bool
	lanes        *lane.Lanes[*ask] // in a cluster one for every slot
	undo         undoer
	leases       *lease.Borrower // nil under virtual time
	bucketPrefix string
	end          sync.Once
	ending       chan struct{} // closed by Close
	calls        calls.Counts
	mixed        atomic.Int64 // how many calls expect rows of several accounts
}

// New returns a store over client, which stays the caller's and must outlive it.
// What [ParseURL] returns says which options suit a limiter.
func New(client rueidis.Client, config Config) (*Store, error) {
	if client == nil {
		return nil, errors.New("redisstore: new: client is required")
	}
	config, err := config.checked()
	if err != nil {
		return nil, fmt.Errorf("redisstore: new: %w", err)
	}
	s := &Store{
		client: client, config: config, script: rueidis.NewLuaScript(script),
		bucketPrefix: config.Prefix + bucketPrefix, ending: make(chan struct{}),
	}
	s.undo.store, s.undo.markers.store = s, s
	s.cluster = client.Mode() == rueidis.ClientModeCluster
	s.lanes = s.newLanes()
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

// Ping implements [store.Pinger].
func (s *Store) Ping(ctx context.Context) error {
	if err := s.client.Do(ctx, s.client.B().Ping().Build()).Error(); err != nil {
		return named(storeError(err), "ping")
	}
	return nil
}
