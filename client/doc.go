// SPDX-License-Identifier: Apache-2.0

// Package client asks a mete server for tokens, over the HTTP API of package
// httpapi.
//
// A denial is a [Decision], not an error. An [Error] says that there is no
// decision: its kind tells a server that cannot be reached from one that
// refuses the request and one that cannot decide now.
//
// Nothing is ever asked twice: a take whose answer was lost may have spent its
// tokens, and only the caller knows whether asking again is worth that.
package client
