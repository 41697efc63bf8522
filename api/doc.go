// SPDX-License-Identifier: Apache-2.0

// Package api defines the JSON of mete's HTTP API as Go types. Servers, clients and commands share them. The
// package depends on neither limiters nor policies.
//
// Amounts are numbers of tokens, exact to a thousandth. Durations are numbers of seconds, exact to a microsecond;
// a null duration means that no wait helps. Members are always present unless their documentation states when
// JSON omits them.
//
// A server's OpenAPI document, /openapi.json, describes the same types. A test compares the two.
package api
