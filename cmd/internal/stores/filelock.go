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

// lockSuffix ends the name of the lock file of a file of buckets. The lock
// needs a file of its own because each save replaces the file of buckets.
const lockSuffix = ".lock"

// maxLockBytes bounds the part of a lock file that is read: the process ID of its holder.
const maxLockBytes = 20

// errLocked is the error of a lock that another process holds.
var errLocked = errors.New("another process has locked it")

// lockFile locks the file of buckets against other servers. The operating system releases
// the lock when the process ends, however it ends. Where the lock file cannot be made or
// the file system has no locks, the server starts all the same, and the log says so.
func lockFile(path string, log *slog.Logger) (*os.File, error) {
	lock, err := openLocked(path + lockSuffix)
	switch {
	case errors.Is(err, errLocked):
		return nil, fmt.Errorf("file: %s is in use by another server%s: stop that server, or name another file", path, holder(path+lockSuffix))
	case err != nil:
		log.Warn("cannot lock file of buckets, another server could use it", "file", path, "err", err)
		return nil, nil
	}
	pid := strconv.Itoa(os.Getpid())
	if err := lock.Truncate(0); err == nil {
		_, _ = lock.WriteAt([]byte(pid), 0) // it only helps people
	}
	return lock, nil
}

// holder names the process that holds a lock, if the lock file tells.
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

// unlock lets another process lock the file. A nil lock does nothing.
func unlock(lock *os.File) {
	if lock != nil {
		lock.Close()
	}
}
