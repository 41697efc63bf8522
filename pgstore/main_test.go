// SPDX-License-Identifier: Apache-2.0

package pgstore_test

import (
	"os"
	"testing"

	"github.com/metehq/mete/internal/proctest"
)

// TestMain isolates these tests from the server that other packages share, because other transactions affect
// pages, locks and statistics.
func TestMain(m *testing.M) {
	os.Unsetenv(proctest.PostgresVar)
	os.Exit(m.Run())
}
