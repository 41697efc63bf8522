// SPDX-License-Identifier: Apache-2.0

// Package exactness compares how well rate limiters keep their own promises while clocks, stores and limits
// misbehave. Each contender runs as its documentation recommends, in a process of its own. The
// comparison counts the tokens above the contender's own bound in the worst window. It also counts lost tokens, and
// retries that were denied after Retry-After. make compare-exactness runs it and writes doc/comparison.md.
package exactness
