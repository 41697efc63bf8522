// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"os"
	"testing"

	"github.com/metehq/mete/internal/proctest"
)

// TestMain keeps the tests away from the server of other packages, whose transactions
// change the pages, locks and statistics that the tests look at.
func TestMain(m *testing.M) {
	os.Unsetenv(proctest.PostgresVar)
	os.Exit(m.Run())
}
