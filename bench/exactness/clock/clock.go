// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"encoding/binary"
	"os"
	"testing"
	"time"
)

// fileVar is the environment variable with the path of a clock's file, for shift.c.txt and shift.go.txt.
const fileVar = "METE_CLOCK_FILE"

// A Clock is the wall clock of some processes. It starts with the true time.
type Clock struct {
	t    testing.TB
	file *os.File
}

// New returns a clock that lasts until the test's cleanup.
func New(t testing.TB) *Clock {
	t.Helper()
	file, err := os.CreateTemp("", "mete-clock-")
	if err == nil {
		err = file.Chmod(0o644) // PostgreSQL runs as another user
	}
	if err != nil {
		t.Fatalf("clock: %v", err)
	}
	t.Cleanup(func() {
		file.Close()
		os.Remove(file.Name())
	})
	c := &Clock{t, file}
	c.Set(0)
	return c
}

// Set makes the clock differ from the true time by d from now on.
func (c *Clock) Set(d time.Duration) {
	c.t.Helper()
	var text [8]byte
	binary.NativeEndian.PutUint64(text[:], uint64(d))
	if _, err := c.file.WriteAt(text[:], 0); err != nil {
		c.t.Fatalf("clock: %v", err)
	}
}

// Environ returns the variables of a process that reads this clock, in addition to its other ones.
func (c *Clock) Environ() []string {
	return []string{fileVar + "=" + c.file.Name(), "LD_PRELOAD=" + library(c.t)}
}

// Start calls start with the variables of [Clock.Environ] in this process's own environment, so that a server that it
// starts inherits them.
func (c *Clock) Start(start func()) {
	environment.Lock()
	defer environment.Unlock()
	for _, name := range []string{fileVar, "LD_PRELOAD"} {
		old, set := os.LookupEnv(name)
		if set {
			defer os.Setenv(name, old)
		} else {
			defer os.Unsetenv(name)
		}
	}
	os.Setenv(fileVar, c.file.Name())
	os.Setenv("LD_PRELOAD", library(c.t))
	start()
}
