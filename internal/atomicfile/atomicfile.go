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

// Replace fills next, a new file in the directory of path, by write. When next is on disk,
// Replace renames it to path. Readers see one of the two files whole. After an error, path
// is as it was, and next is removed. Replace closes next.
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

// Write is [Replace] by data, through a file that only its owner can read until it is whole.
func Write(path string, data []byte, mode os.FileMode) error {
	next, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	return Replace(path, next, func(w io.Writer) error {
		_, err := w.Write(data)
		return errors.Join(err, next.Chmod(mode))
	})
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
