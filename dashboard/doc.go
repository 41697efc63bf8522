// SPDX-License-Identifier: Apache-2.0

// Package dashboard shows a limiter at work: what it lets through and denies, by
// which rule and whom, what a request would be answered and why, and what another
// limit would make of the same traffic. It is what mete serve has at its admin
// address under /dashboard/; a program with a [mete.Limiter] of its own can serve it,
// too:
//
//	board, err := dashboard.New(dashboard.Config{Limiter: lim, Source: counts, Viewer: whoMayLook})
//	mux.Handle("/limits/dashboard/", http.StripPrefix("/limits/dashboard", board))
//	mux.Handle("/limits/v1/", http.StripPrefix("/limits", api)) // package httpapi, for administrators
//
// The pages are files in this package: nothing has to be built, and nothing is asked
// of any other host. They find their data, and the API that they act by, by relative
// URLs, so that they work behind any prefix.
//
// # Who may see what
//
// The files themselves hold no secret and are for everybody. All data takes a
// [Viewer] who may look, and bucket keys are shown to those who may see them. What
// changes something is not in this package: the pages ask the API for it, with the
// token of who looks.
//
// # What it costs
//
// Once a second the [Source] is asked what it has counted, whoever looks or does not. What
// came of it is written once and sent to all pages that are open, at most [MaxStreams].
//
// doc/dashboard.md says what the pages show.
package dashboard
