// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/redisstore"
	"github.com/metehq/mete/store"
)

// TestTake_ClientIsClosed closes the caller's client while takes are in flight. They may be spent, because Redis
// may still read them.
func TestTake_ClientIsClosed(t *testing.T) {
	t.Parallel()
	r := proctest.StartRedis(t)
	client := connect(t, r.Addr)
	const takes, calls = 3, 2
	s := open(t, client, redisstore.Config{Timeout: time.Minute, MaxInFlight: calls})
	charges := func(i int) []store.Charge {
		return []store.Charge{{Key: fmt.Sprint("k", i), Limit: perSecond(t, 10, 1), Cost: bucket.Token}}
	}
	if _, _, err := s.Take(t.Context(), nil, charges(0), mete.Mode{}); err != nil { // loads the script
		t.Fatal(err)
	}
	waiting(t, s, 0, 0) // this call is not counted below
	r.Pause()
	failed := make(chan error, takes)
	for i := range takes {
		go func() {
			_, _, err := s.Take(t.Context(), nil, charges(i), mete.Mode{})
			failed <- err
		}()
		waiting(t, s, max(i+1-calls, 0), min(i+1, calls))
	}
	client.Close()
	for range takes {
		if err := <-failed; err == nil {
			t.Error("a take was answered by a server that is paused")
		} else if mete.Spent(err) != mete.MaybeSpent {
			t.Errorf("%v: not spent; want maybe spent", err)
		}
	}
}
