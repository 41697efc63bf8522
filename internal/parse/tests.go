// SPDX-License-Identifier: Apache-2.0

package parse

// Bounds of the tests in a policy file, for the schema of the file and for its reader in
// package policytest.
const (
	MaxTests        = 1000      // of a file
	MaxTestSteps    = 1000      // of a test
	MaxTestRequests = 100_000   // of a test
	MaxFileRequests = 1_000_000 // of all tests of a file together
	MaxTestName     = 200       // bytes
)

// Tests has the tables and the words that the section tests of a policy file can have.
type Tests struct {
	Test, Step, Expect *Table
	StepFields         []string // of a test of one step
	Reasons            []string // of denials by limits
	Stages             []string // shares
}
