// SPDX-License-Identifier: Apache-2.0

// Package policytest runs the tests that a policy file brings along: requests in
// virtual time, and what is expected of the decisions. What they can say is in
// doc/policy.md of the repository.
//
// [Run] decides each request by a [mete.Limiter] with a store in memory that is the
// test's own, just as a server would, but by a clock that moves only when the test
// says so. Tests are independent, and take no time: a million requests are decided
// in seconds. [Check] is for go test:
//
//	func TestPolicy(t *testing.T) {
//		data, err := os.ReadFile("policy.json")
//		…
//		m, err := policytest.Load(data, policy.Options{HashKey: []byte("test")})
//		…
//		policytest.Check(t, m)
//	}
//
// The policy should be loaded with a [policy.Options.HashKey] of the test's own.
// Else keys that may be secrets are hashed in another way by each process, and what
// depends on the hash of a key is not repeatable: which keys a share of them is, and
// when the windows of anchor: key begin.
package policytest
