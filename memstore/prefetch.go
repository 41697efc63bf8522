// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package memstore

// prefetch loads the slot and the next cache line without waiting. It reads nothing, so the address after the
// last slot is harmless.
//
//go:noescape
func prefetch(sl *slot)
