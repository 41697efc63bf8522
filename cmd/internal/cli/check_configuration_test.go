// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"os"
	"path/filepath"
	"testing"
)

// Whoever takes the one file for the other is told so, and nothing else.
func TestCheck_OfAConfiguration(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mete.yaml")
	if err := os.WriteFile(path, []byte("listen: 127.0.0.1:8080\npolicy: policy.yaml\nstore: 'memory:'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantRun(t, 1, `.*: this looks like a configuration of mete serve, not like a policy; check it with 'mete serve --check --config .*mete.yaml'\n.*`, "", "check", path)
}
