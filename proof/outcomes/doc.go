// SPDX-License-Identifier: Apache-2.0

// Package outcomes tests limits that are charged by the response, and limits of concurrency. A real mete serve
// with each store is the gateway in front of a real nginx, which decides the outcomes.
package outcomes
