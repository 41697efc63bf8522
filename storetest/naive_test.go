// SPDX-License-Identifier: Apache-2.0

package storetest_test

import (
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/storetest"
)

// The model satisfies the contract.
func TestNaive(t *testing.T) {
	storetest.Run(t, func(_ *testing.T, now func() bucket.Instant) mete.Store { return storetest.NewModel(now) })
}

func TestNaive_Families(t *testing.T) {
	storetest.RunFamilies(t, func(_ *testing.T, now func() bucket.Instant) mete.Store { return storetest.NewModel(now) })
}

func TestNaive_Penalties(t *testing.T) {
	storetest.RunPenalties(t, func(_ *testing.T, now func() bucket.Instant) mete.Store { return storetest.NewModel(now) })
}

func TestModel_Holds(t *testing.T) {
	storetest.RunHolds(t, func(_ *testing.T, now func() bucket.Instant) mete.Store { return storetest.NewModel(now) })
}
