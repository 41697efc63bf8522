// SPDX-License-Identifier: Apache-2.0

package policyyaml_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policy/lint"
	"github.com/metehq/mete/policytest"
	"github.com/metehq/mete/policyyaml"
)

// Every YAML block in doc/policy.md is a valid policy without warnings, and its tests pass.
func TestDocument_Policies(t *testing.T) {
	data, err := os.ReadFile("../doc/policy.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(data), "\n```yaml\n")[1:]
	if len(blocks) < 8 {
		t.Fatalf("doc/policy.md has %d blocks of YAML", len(blocks))
	}
	for i, block := range blocks {
		block, _, _ = strings.Cut(block, "```\n")
		t.Run(fmt.Sprint(i+1), func(t *testing.T) {
			m, err := policyyaml.Parse("policy.yaml", []byte(block), policy.Options{HashKey: []byte("document"), Now: written})
			if err != nil {
				t.Fatalf("%v, of\n%s", err, block)
			}
			for _, w := range lint.Check(m, time.Now()) {
				t.Errorf("mete check warns: %v, of\n%s", w, block)
			}
			if len(testsOf(t, m)) > 0 {
				policytest.Check(t, m)
			}
		})
	}
}
