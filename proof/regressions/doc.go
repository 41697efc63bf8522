// SPDX-License-Identifier: Apache-2.0

// Package regressions proves that the checkers of mete can fail. Reviews and checkers found bugs that broke promises. For
// many of them, testdata has an edit that reverts the fix in today's code. The test compiles a checker with the edit, runs
// it, and requires the report of the broken promise. Without the edit, the same checker must pass.
//
// The checkers are simulations and recorded histories, and a direct test for some bugs. doc/robustness.md lists all findings,
// and the commands that repeat them. It names a test for each finding without an edit.
//
// An edit is a unified diff in testdata. Line numbers do not matter, but the old lines must occur exactly once in the
// file. If a change of the code moves or rewrites them, the test fails: rewrite the edit for the new code. To look at
// an edit in its place, run
//
//	git apply --unidiff-zero proof/regressions/testdata/NAME.diff
package regressions
