// SPDX-License-Identifier: Apache-2.0

// Package bench compares mete with other limiters: its in-memory store call by
// call, as a table (go run ./compare) and as ordinary benchmarks
// (go test -bench .), and its stores in Redis and PostgreSQL by many callers
// (go run ./redis, go run ./postgres). It also measures how fast mete replays a log
// (go run ./replay). README.md says under which conditions.
package bench
