// SPDX-License-Identifier: Apache-2.0

// Package violations keeps an audit trail of denied requests in PostgreSQL: the
// table rate_limit_violation, which can be asked by SQL and by a [Reader].
//
// A [Recorder] writes it. Its Record is the hook of a limiter
// ([mete.Config.OnDenial]): it never waits for the database and never fails. Rows
// are gathered in memory and written behind it, one COPY each window (a second).
//
// # Under attack
//
// A denial is worth a row while there are few. The first three of a key have a row
// each; further ones share one row in each window, which says how many they were.
// No more than MaxRows rows are written in a window, and no more than MaxQueue wait
// for that, in which counts go on growing meanwhile. Denials of keys for which there
// is no room share one row for each limit, with the key [Others]. So the sums over
// rows are exact for rules, limits and reasons; what is lost in a flood is who, as
// [Stats] says. Only where the database does not take them at all, in the end, or
// more than a thousand limits deny, are denials dropped, and counted.
//
// Each denied request counts once, under the limit that denied it: that with the
// longest wait. A shadow rule counts what it would have denied, in rows of its own.
// That the store failed is nobody's violation, and is not recorded.
//
// # Who can be seen
//
// By default nobody: keys and users are stored as keyed hashes, and addresses are
// cut to their network, /24 or /48. Who has the hash key can ask for a key, and
// find it; who has not cannot read one. [Config.Raw] stores all of them as they are.
// Endpoints are stored as they are, without the query: they can be turned off.
//
// What a client sends is made storable: bytes other than printable ASCII are
// written %XX, as in a URL, and what is too long ends with "...".
package violations
