// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/internal/faulttest"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/pgstore"
)

// TestFault_HoldersKilled kills processes that hold slots: 1,000 of them in a long run.
func TestFault_HoldersKilled(t *testing.T) {
	t.Parallel()
	kills := 1000
	if testing.Short() {
		kills = 5
	}
	prepare := func() string { return with(proctest.PostgresURL(t), "timeout=1m&schema="+proctest.PostgresSchema(t)) }
	faulttest.KillHolders(t, kills, prepare, func(url string) mete.Store {
		s, err := pgstore.Open(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	})
}
