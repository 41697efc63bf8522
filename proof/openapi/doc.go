// SPDX-License-Identifier: Apache-2.0

// Package openapi compares the answers of a real server with its own description, /openapi.json.
package openapi
