// SPDX-License-Identifier: Apache-2.0

// Package proctest runs real programs in tests. It finds a program, starts it in its own directory, waits
// until it answers, and ends it with the test. If a program is missing, the test fails and the message names
// the package to install. It supports Redis (single, with sentinels, as a cluster), PostgreSQL (single,
// behind PgBouncer, shared by many tests), and a proxy that breaks connections.
//
// Tests that need one plain server and break nothing use the server that METE_TEST_REDIS=redis://host:port or
// METE_TEST_POSTGRES=postgres://user@host:port/database names: see [RedisAddr] and [PostgresURL]. The command
// withservers starts both for all packages of a test run.
package proctest
