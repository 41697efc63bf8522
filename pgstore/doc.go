// SPDX-License-Identifier: Apache-2.0

// Package pgstore keeps buckets in PostgreSQL.
package pgstore
