// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package memstore

// prefetch makes the processor load the slot, and those in the next cache line, while
// it goes on. It reads nothing: the address behind the last slot is harmless.
//
//go:noescape
func prefetch(sl *slot)
