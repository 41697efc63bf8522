// SPDX-License-Identifier: Apache-2.0

// Package clock gives programs a wall clock that a test sets. Programs in C, and Node.js, read the clock through a
// library in LD_PRELOAD. Programs in Go are built with another time.Now, because they call the kernel directly.
// Monotonic clocks do not change. An administrator or NTP sets the clock of a machine in the same way.
package clock
