// SPDX-License-Identifier: Apache-2.0

// Package report has histograms, medians of rounds, and tables.
package report
