// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"os"
	"testing"

	"github.com/metehq/mete/internal/proctest"
)

// TestMain keeps the tests of this package away from the server of other packages: they
// look at pages, locks and statistics, which the transactions of others change.
func TestMain(m *testing.M) {
	os.Unsetenv(proctest.PostgresVar)
	os.Exit(m.Run())
}
