// SPDX-License-Identifier: Apache-2.0

package policytest_test

import (
	"context"
	"fmt"

	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policytest"
)

func ExampleRun() {
	m, err := policy.Load([]byte(`{
		"rules": [{"name": "free", "limit_keys": ["header:x-user"], "algorithm_config": {"rps": 10, "burst": 20}}],
		"tests": [{"name": "20 at once", "request": {"header:x-user": "ann"}, "steps": [
			{"times": 20, "expect": "allowed"},
			{"expect": {"denied": "free", "retry_after": "100ms"}},
			{"after": "50ms", "expect": "allowed"}]}]
	}`), policy.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	tests, _, err := policytest.Read(m)
	if err != nil {
		fmt.Println(err)
		return
	}
	report, err := policytest.Run(context.Background(), m, tests)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, result := range report.Results {
		for _, failure := range result.Failures {
			fmt.Println(failure)
			for _, line := range failure.Why {
				fmt.Println("   ", line)
			}
		}
	}
	// Output:
	// test "20 at once", step 3, after 50ms: want allowed; got denied by free (token_bucket_exceeded), retry after 50ms
	//     the request: header:x-user="ann"
	//     rule free applies: 0.5 of 20 left, cost 1, denies, retry after 50ms
}
