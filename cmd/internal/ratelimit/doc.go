// SPDX-License-Identifier: Apache-2.0

// Package ratelimit runs mete in place of the rate limit service envoyproxy/ratelimit. It reads the environment
// variables of that service, its configuration files or its configuration by xDS, and opens the same ports.
//
// Package envoyapi/dropin makes the decisions. This package has the settings, the sources of the configuration and
// the listeners.
package ratelimit
