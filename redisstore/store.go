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

var (
	//go:embed take.lua
	takeScript string
	//go:embed take_settle.lua
	settleScript string
	//go:embed take_calendar.lua
	calendarScript string
	//go:embed take_account.lua
	accountScript string
	//go:embed take_history.lua
	historyScript string
	//go:embed take_row.lua
	rowScript string
	//go:embed take_lease.lua
	leaseScript string
	//go:embed take_slots.lua
	slotsScript string
	//go:embed take_penalty.lua
	penaltyScript string
	//go:embed take_hold.lua
	holdScript string
	//go:embed take_operation.lua
	operationScript string

	script = takeScript + settleScript + nestScript(calendarScript+accountScript+
		nestScript(historyScript+rowScript+
			nestScript(leaseScript+slotsScript+penaltyScript+holdScript+operationScript)))
)

// nestScript puts the last parts of a script into a function. Each call creates the functions of the script again. For each
// variable of the same function that they use, Lua searches a list of all such variables; for others it does not. A nested
// part can use at most 60 variables of the earlier parts.
func nestScript(parts string) string { return "return (function()\n" + parts + "end)()\n" }

const bucketPrefix = "tb:" // begins a bucket's key, after [Config.Prefix]

// A Store keeps buckets in Redis: it is a [mete.Store] and a [store.Pinger]. [New] and [Open] create it. It is
// safe for concurrent use. It has one goroutine per call in flight, and a few more while it holds leases.
// [Store.Close] ends them.
type Store struct {
	client       rueidis.Client
	config       Config
	script       *rueidis.Lua
	cluster      bool
	lanes        *lane.Lanes[*ask] // in a cluster, one lane per slot
	undo         undoer
	leases       *lease.Borrower // nil under virtual time
	bucketPrefix string
	end          sync.Once
	ending       chan struct{} // closed by Close
	calls        calls.Counts
	mixed        atomic.Int64 // number of calls that still skip the plain program
}

// New returns a store that uses client. The caller closes client after the store. [ParseURL] returns suitable
// client options.
func New(client rueidis.Client, config Config) (*Store, error) {
	if client == nil {
		return nil, errors.New("redisstore: new: client is required")
	}
	config, err := config.withDefaults()
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
	if err := s.startLeases(); err != nil {
		return nil, fmt.Errorf("redisstore: new: %w", err)
	}
	return s, nil
}

// now returns the virtual time, or -1 to select the server's clock.
func (s *Store) now() int64 {
	if s.config.Now == nil {
		return -1
	}
	return int64(s.config.Now())
}

// Ping implements [store.Pinger].
func (s *Store) Ping(ctx context.Context) error {
	if err := s.client.Do(ctx, s.client.B().Ping().Build()).Error(); err != nil {
		return withOp(newStoreError(err), "ping")
	}
	return nil
}
