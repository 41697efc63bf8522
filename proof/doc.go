// SPDX-License-Identifier: Apache-2.0

// Package proof has the tests that need the whole program, real gateways, or libraries that mete must not
// depend on. It is not published.
package proof
