// SPDX-License-Identifier: Apache-2.0

package policytest_test

import (
	"testing"

	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policytest"
)

// testsOf returns the tests of a policy, which has no errors in its tests.
func testsOf(t testing.TB, m *policy.Matcher) []policytest.Test {
	t.Helper()
	tests, _, err := policytest.Read(m)
	if err != nil {
		t.Fatal(err)
	}
	return tests
}
