// SPDX-License-Identifier: Apache-2.0

// Package policytest runs the tests in a policy file: requests in virtual time, and the expected decisions. The
// file doc/policy.md of the repository describes the tests.
//
// [Run] decides each request with a [mete.Limiter] over an in-memory store, like a server, but with a virtual
// clock. Tests are independent and fast: a million requests take seconds. Use [Check] in go test:
//
//	func TestPolicy(t *testing.T) {
//		data, err := os.ReadFile("policy.json")
//		…
//		m, err := policytest.Load(data, policy.Options{HashKey: []byte("test")})
//		…
//		policytest.Check(t, m)
//	}
//
// Load the policy with a fixed [policy.Options.HashKey]. Otherwise, each process would hash secret key parts
// differently. Some results depend on the hash: the keys of a partially enforced rule, and the windows of anchor:
// key.
package policytest
