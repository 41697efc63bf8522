// SPDX-License-Identifier: Apache-2.0

// Package openapi holds what the real server answers against its own description,
// /openapi.json, with a library that knows what that means.
package openapi
