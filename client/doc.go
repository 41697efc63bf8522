// SPDX-License-Identifier: Apache-2.0

// Package client is a client for the HTTP API of a mete server, which package httpapi documents.
//
// A denial is a [Decision], not an error. An [Error] means that there is no decision. Its kind distinguishes a
// server that is unreachable, a request that is rejected, and a server that cannot decide.
//
// The client never retries. If the response to a take is lost, its tokens may be spent, and only the caller can
// decide whether to retry.
package client
