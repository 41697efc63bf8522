// SPDX-License-Identifier: Apache-2.0

package policytest_test

import (
	"os"
	"strings"
	"testing"

	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policytest"
)

// FuzzRun: tests that can be read can be run, and twice with the same result.
func FuzzRun(f *testing.F) {
	for _, file := range []string{"testdata/passing.json", "testdata/failing.json"} {
		f.Add(read(f, file))
	}
	rules, err := os.ReadFile("testdata/policy.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, section string) {
		m, err := policy.Load([]byte(strings.ReplaceAll(string(rules), "TESTS", section)), policy.Options{HashKey: []byte("test")})
		if err != nil {
			return
		}
		tests, _, err := policytest.Read(m)
		if err != nil {
			return
		}
		made := 0
		for _, test := range tests {
			if made += test.Requests(); made > 1000 {
				return
			}
		}
		var results [2]string
		for i := range results {
			report, err := policytest.Run(t.Context(), m, tests)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range report.Results {
				for _, f := range r.Failures {
					if f.Want == "" || f.Got == "" || f.Path == "" || len(f.Why) == 0 || f.Request < 1 || strings.Contains(f.String(), "\n") {
						t.Errorf("failure %q at %q, request %d", f, f.Path, f.Request)
					}
					results[i] += f.String() + strings.Join(f.Why, "\n")
				}
			}
		}
		if results[0] != results[1] {
			t.Errorf("failures\n%s\nand then\n%s", results[0], results[1])
		}
	})
}
