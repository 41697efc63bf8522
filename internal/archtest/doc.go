// SPDX-License-Identifier: Apache-2.0

// Package archtest holds the repository's rules as tests: who may import whom,
// what a module may require, how a file starts. Each rule says why it is one,
// and is itself tested on a tree that breaks it.
package archtest
