// SPDX-License-Identifier: Apache-2.0

package resp_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/metehq/mete/proof/meted"
	"github.com/metehq/mete/respapi"
)

// The example of examples/resp runs with the packages of this directory.
func TestExample_Node(t *testing.T) {
	t.Parallel()
	s := serve(t, respapi.Config{})
	text, err := os.ReadFile(filepath.Join(meted.Root(t), "examples", "resp", "throttle.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "throttle.mjs"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	packages, err := filepath.Abs("node_modules")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(packages, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", "throttle.mjs", "redis://"+s.addr)
	cmd.Dir = dir
	output, err := cmd.CombinedOutput()
	const want = "request 1: allowed, 2 left\nrequest 2: allowed, 1 left\nrequest 3: allowed, 0 left\nrequest 4: denied, retry in 60 s\n"
	if err != nil || string(output) != want {
		t.Errorf("the example: %v\n%s\nwant\n%s", err, output, want)
	}
}
