// SPDX-License-Identifier: Apache-2.0

// Package atomicfile replaces files atomically.
package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// Replace calls write to fill next, a new file in the directory of path. It syncs next, closes it, and renames it to
// path. Readers see either the old or the new file as a whole. On error, path is unchanged and next is removed.
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

// Write replaces path by data. Only the owner can read the temporary file.
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

// syncDir makes a rename in dir survive a power failure, on systems that support it.
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
