// SPDX-License-Identifier: Apache-2.0

// Package dropin answers Envoy's rate limit service v3 as the reference server, envoyproxy/ratelimit, does. It reads
// the same configuration and makes the same decisions, with a [mete.Limiter] as the store of the counters.
//
// [Parse] reads configuration files, and [FromProto] the messages of a control plane. [NewService] returns the
// service, and [Service.SetConfig] replaces its configuration.
package dropin
