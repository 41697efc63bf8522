// SPDX-License-Identifier: Apache-2.0

// Package report sums figures up and prints them: histograms, medians of
// rounds, tables.
package report
