// SPDX-License-Identifier: Apache-2.0

// Package judge compares the decisions of a rate limiter with the limiter's own promise. It knows for each take when
// the caller asked and when the answer arrived. The decision lies between the two, and every doubt about its instant
// favors the limiter.
package judge
