// SPDX-License-Identifier: Apache-2.0

// Package violations keeps an audit trail of denied requests in the PostgreSQL table rate_limit_violation.
// Operators query it with SQL, and programs with a [Reader].
//
// A [Recorder] writes the table. Its method Record is the denial hook of a limiter ([mete.Config.OnDenial]): it
// never waits for the database and never fails. Rows are gathered in memory and written in the background, with
// one COPY per window (a second).
//
// # Overload
//
// The first three denials of a key have a row each. Later ones share one row per window with a count. At most
// MaxRows rows are written per window. At most MaxQueue rows wait, and their counts continue to grow. Denials of
// keys that do not fit share one row per limit, with the key [Others]. Sums over rows are therefore exact for
// rules, limits and reasons; a flood loses only keys and users, as [Stats] reports. Denials are dropped and
// counted only if the database stays unavailable, or if more than a thousand limits deny.
//
// Each denied request counts once, under the limit with the longest wait. A shadow rule counts the requests that
// it would have denied, in separate rows. Failures of the store are not violations and are not recorded.
//
// # Privacy
//
// By default, keys and users are stored as keyed hashes, and addresses are truncated to their network, /24 or
// /48. Operators with the hash key can find the rows of a known key. Without it, keys are unreadable.
// [Config.Raw] stores them unchanged. Endpoints are stored without the query, and can be disabled.
//
// Text from clients is sanitized: bytes that are not printable ASCII are written as %XX, as in a URL. Long values
// are truncated and end with "...".
package violations
