// SPDX-License-Identifier: Apache-2.0

// Package proctest runs real programs in tests: it finds them, starts them in a
// directory of their own, waits until they answer, and ends them with the test.
// A program that is missing fails the test and says what to install.
package proctest
