// SPDX-License-Identifier: Apache-2.0

// Package envoyapi answers Envoy's rate limit service and its external authorization service with a limiter.
package envoyapi
