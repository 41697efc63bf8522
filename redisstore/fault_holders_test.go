// SPDX-License-Identifier: Apache-2.0

package redisstore_test

import (
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/faulttest"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/redisstore"
)

// TestFault_HoldersKilled kills processes that hold slots: 1,000 of them in a long run.
func TestFault_HoldersKilled(t *testing.T) {
	t.Parallel()
	kills := 1000
	if testing.Short() {
		kills = 5
	}
	faulttest.KillHolders(t, kills, func() string { return "redis://" + proctest.StartRedis(t).Addr }, func(url string) mete.Store {
		s, _ := dialURL(t, url, redisstore.Config{Timeout: faulttest.Patience})
		return s
	})
}
