// SPDX-License-Identifier: Apache-2.0

// Package bench compares mete with other limiters. README.md describes the conditions.
//
//	go run ./compare          the in-memory store, as a table
//	go test -bench .          the in-memory store, as Go benchmarks
//	go run ./redis            many callers and Redis
//	go run ./postgres         many callers and PostgreSQL
//	go run ./http             the server over HTTP
//	go run ./replay           the replay of a log
package bench
