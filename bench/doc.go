// SPDX-License-Identifier: Apache-2.0

// Package bench compares mete's in-memory store with other limiters, call by
// call: as a table (go run ./compare) and as ordinary benchmarks
// (go test -bench .). README.md says under which conditions.
package bench
