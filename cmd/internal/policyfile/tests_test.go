// SPDX-License-Identifier: Apache-2.0

package policyfile_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/metehq/mete/cmd/internal/policyfile"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policytest"
)

// The examples test themselves, and leave out none of their rules.
func TestExamples_PassTheirTests(t *testing.T) {
	for name := range examples {
		t.Run(name, func(t *testing.T) {
			m, err := policyfile.Load(filepath.Join(examplesDir, name), policy.Options{HashKey: []byte("test")})
			if err != nil {
				t.Fatal(err)
			}
			report, err := policytest.Run(t.Context(), m, m.Tests())
			if err != nil {
				t.Fatal(err)
			}
			if len(report.Results) == 0 {
				t.Error("there are no tests")
			}
			for _, r := range report.Results {
				for _, f := range r.Failures {
					t.Errorf("%s: %v\n\t%s", f.Path, f, strings.Join(f.Why, "\n\t"))
				}
			}
			for _, gap := range report.Gaps() {
				t.Error(gap)
			}
		})
	}
}
