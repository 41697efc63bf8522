// SPDX-License-Identifier: Apache-2.0

// Package dashboard serves web pages that show a limiter at work: allowed and denied requests by rule
// and client, explanations of decisions, and a playground for limits. mete serve has them at its admin
// address below /dashboard/. To serve them in your own program:
//
//	pages, err := dashboard.New(dashboard.Config{})
//	mux.Handle("/limits/dashboard/", http.StripPrefix("/limits/dashboard", pages))
//	mux.Handle("/limits/v1/", http.StripPrefix("/limits", admin)) // package httpapi
//
// The pages are embedded files. They need no build step, load nothing from other hosts, and use relative
// URLs, so that any prefix works.
//
// # Roles
//
// The files contain no secrets, and any client may load them. All data comes from the API of package
// httpapi, with the caller's token. The API needs Admin and, for all pages, Live: see httpapi.Config.
//
// doc/dashboard.md describes the pages.
package dashboard
