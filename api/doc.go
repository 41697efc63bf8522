// SPDX-License-Identifier: Apache-2.0

// Package api has the JSON of mete's HTTP API as Go types. Servers, clients and commands
// share them, so that every shape exists once. The package knows neither limiters nor
// policies.
//
// Amounts are numbers of tokens, exact to a thousandth, and durations are numbers of
// seconds, exact to a microsecond. The duration null means that no wait helps. A member
// that can be left out says so; every other member is always there.
//
// The OpenAPI document of a server, /openapi.json, describes the same shapes. A test
// compares the two.
package api
