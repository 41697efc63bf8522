// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// A program that only asks a server links neither the engine nor the policy language.
func TestClient_LinksNoEngine(t *testing.T) {
	const module = "github.com/metehq/mete"
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	var ours []string
	for dep := range strings.FieldsSeq(string(out)) {
		if rest, ok := strings.CutPrefix(dep, module); ok {
			ours = append(ours, strings.TrimPrefix(rest, "/"))
		}
	}
	slices.Sort(ours)
	if want := []string{"api", "bucket", "client", "internal/almanac", "store"}; !slices.Equal(ours, want) {
		t.Errorf("client links %q, want %q", ours, want)
	}
}
