// SPDX-License-Identifier: Apache-2.0

package policyfile_test

import (
	"path/filepath"
	"testing"

	"github.com/metehq/mete/cmd/internal/policyfile"
	"github.com/metehq/mete/policy"
)

// Nothing in what people copy is probably not meant.
func TestExamples_HaveNoWarnings(t *testing.T) {
	policies := 0
	for _, pattern := range []string{"../../../examples/*.yaml", "../../../examples/*/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			m, err := policyfile.Load(file, policy.Options{Now: written})
			if err != nil {
				continue // it is of another program
			}
			policies++
			for _, w := range m.Warnings() {
				if !w.Kind().Note {
					t.Errorf("%s: %v", file, w)
				}
			}
		}
	}
	if policies < 20 {
		t.Errorf("%d policies: the test says little", policies)
	}
}
