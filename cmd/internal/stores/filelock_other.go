// SPDX-License-Identifier: Apache-2.0

//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package stores

import (
	"errors"
	"os"
)

// openLocked fails because this system has no file locks.
func openLocked(string) (*os.File, error) { return nil, errors.ErrUnsupported }
