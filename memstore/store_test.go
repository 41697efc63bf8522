// SPDX-License-Identifier: Apache-2.0

package memstore_test

import (
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/memstore"
	"github.com/metehq/mete/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T, now func() bucket.Instant) mete.Store {
		return mustNew(t, memstore.Config{Now: now})
	})
}
