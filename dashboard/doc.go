// SPDX-License-Identifier: Apache-2.0

// Package dashboard has web pages that show a limiter at work: the requests that it allows
// and denies, by rule and by client; why it answers a request so; and the effect of another
// limit on the same traffic. mete serve has them at its admin address below /dashboard/. A
// program with a [mete.Limiter] of its own can serve them, too:
//
//	pages, err := dashboard.New(dashboard.Config{})
//	mux.Handle("/limits/dashboard/", http.StripPrefix("/limits/dashboard", pages))
//	mux.Handle("/limits/v1/", http.StripPrefix("/limits", admin)) // package httpapi
//
// The pages are files in this package: there is nothing to build, and they load nothing from
// another host. They use relative URLs, so that they work behind any prefix.
//
// # Roles
//
// The files hold no secret, and everybody may load them. All data comes from the API of
// package httpapi, with the caller's token. The API needs Admin and, for all pages, Live: see
// httpapi.Config.
//
// doc/dashboard.md describes the pages.
package dashboard
