// SPDX-License-Identifier: Apache-2.0

package stores

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
)

// lockSuffix is the suffix of the lock file. The lock has its own file because each save replaces the file of
// buckets.
const lockSuffix = ".lock"

// maxLockBytes bounds the process ID that is read from a lock file.
const maxLockBytes = 20

var errLocked = errors.New("another process has locked it")

// lockFile locks the file of buckets against other servers. The operating system releases the lock when the
// process ends. If the file system has no locks, lockFile logs a warning and returns nil.
func lockFile(path string, log *slog.Logger) (*os.File, error) {
	lock, err := openLocked(path + lockSuffix)
	switch {
	case errors.Is(err, errLocked):
		return nil, fmt.Errorf("file: %s is in use by another server%s: stop that server, or name another file", path, holder(path+lockSuffix))
	case err != nil:
		log.Warn("cannot lock bucket file, another server could use it", "file", path, "err", err)
		return nil, nil
	}
	pid := strconv.Itoa(os.Getpid())
	if err := lock.Truncate(0); err == nil {
		_, _ = lock.WriteAt([]byte(pid), 0) // only a hint for people
	}
	return lock, nil
}

// holder describes the process that holds a lock, if the lock file identifies it.
func holder(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	var text [maxLockBytes]byte
	n, _ := f.ReadAt(text[:], 0)
	pid := string(text[:n])
	if pid == "" || strings.Trim(pid, "0123456789") != "" {
		return ""
	}
	return " (process " + pid + ")"
}

func unlock(lock *os.File) {
	if lock != nil {
		lock.Close()
	}
}
