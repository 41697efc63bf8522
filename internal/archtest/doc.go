// SPDX-License-Identifier: Apache-2.0

// Package archtest tests the rules of the repository: the imports of each layer, the requirements of modules,
// names, sizes, documents and guides. Each rule has a reason, and a test on a tree that breaks it.
package archtest
