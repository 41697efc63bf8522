// SPDX-License-Identifier: Apache-2.0

// Package proctest runs real programs in tests: it finds them, starts them in a
// directory of their own, waits until they answer, and ends them with the test.
// A program that is missing fails the test and says what to install. It knows
// most about Redis: alone, with sentinels, as a cluster; and about PostgreSQL:
// alone, behind PgBouncer, one that many tests share. In front of each may be a
// proxy that breaks connections.
//
// METE_TEST_REDIS=redis://host:port in the environment makes the tests that
// need one plain server and break nothing use that one; see [RedisAddr]. So does
// METE_TEST_POSTGRES=postgres://user@host:port/database; see [PostgresURL]. The
// command withservers starts both for all packages of a test run.
package proctest
