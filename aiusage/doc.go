// SPDX-License-Identifier: Apache-2.0

// Package aiusage counts the tokens and the money that clients spend at language models: by model, rule and key, in bounded
// memory. It also knows the keys in a loop and the open circuit breakers. The hooks of a limiter and of package httplimit
// feed a [Counts], and package httpapi serves it as /v1/ai.
package aiusage
