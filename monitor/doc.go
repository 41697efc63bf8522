// SPDX-License-Identifier: Apache-2.0

// Package monitor observes a limiter for people who look at it. Three parts work together:
//
//   - [Counts] count the decisions of a limiter, by rule. A program that has metrics of its
//     own implements [Source] instead.
//   - A [Monitor] asks the source once a second. It keeps 15 minutes of samples, and sends
//     each new one to its listeners.
//   - [Watches] pass on the decisions about single buckets.
//
// Package httpapi serves all of this below /v1, and package dashboard has pages that show it.
package monitor
