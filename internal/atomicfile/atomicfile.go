// SPDX-License-Identifier: Apache-2.0

// Package atomicfile replaces a file in one step.
package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// Replace puts next, a new file in the directory of path, in the place of the file at
// path, when write has filled it and it is on disk. After an error, the name stands for
// the whole file as before, or for none as before, and next is removed. A reader sees one
// of the two files whole. Replace closes next.
func Replace(path string, next *os.File, write func(io.Writer) error) error {
	err := write(next)
	if err == nil {
		err = next.Sync()
	}
	if closing := next.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Rename(next.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(next.Name()))
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes a rename in dir survive a power failure, on systems that can.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return nil
}
