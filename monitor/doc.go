// SPDX-License-Identifier: Apache-2.0

// Package monitor observes a limiter for dashboards. It has three parts:
//
//   - [Counts] counts the decisions of a limiter per rule. A program with its own metrics implements [Source]
//     instead.
//   - A [Monitor] polls the source once per second. It keeps 15 minutes of samples and sends new ones to its
//     listeners.
//   - [Watches] forwards the decisions about single buckets.
//
// Package httpapi serves this data below /v1, and package dashboard displays it.
package monitor
