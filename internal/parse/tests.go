// SPDX-License-Identifier: Apache-2.0

package parse

// Bounds of the tests in a policy file, for the schema of the file and for package policytest.
const (
	MaxTests        = 1000      // per file
	MaxTestSteps    = 1000      // per test
	MaxTestRequests = 100_000   // per test
	MaxFileRequests = 1_000_000 // per file
	MaxTestName     = 200       // bytes
)

// Tests has the tables and the words of the tests section of a policy file.
type Tests struct {
	Test, Step, Expect *Table
	Usage              *Table   // of a language model
	StepFields         []string // of a test with one step
	Reasons            []string // of denials by limits
	Stages             []string // shares
}
