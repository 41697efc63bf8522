// SPDX-License-Identifier: Apache-2.0

//go:build unix

package jwtclaims_test

import (
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/metehq/mete/internal/testkit"
	"github.com/metehq/mete/jwtclaims"
)

// Reading a pipe has no end: one in the place of the key set keeps neither the next
// look nor Close waiting.
func TestFollow_Pipe(t *testing.T) {
	path := file(t, keySet(jwk("ed", edKey())))
	var log testkit.Log
	v := start(t, jwtclaims.Config{KeySet: path, Interval: 10 * time.Millisecond, Logger: log.Logger()})
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	testkit.Until(t, "the pipe is noticed", func() bool { return log.Count("not a regular file") > 0 })
	if got := claim(v, good(t), "sub"); got != "u1" {
		t.Errorf("claim %q, want that the old keys stay in force", got)
	}
	v.Close()
	if _, err := jwtclaims.New(context.Background(), jwtclaims.Config{KeySet: path}); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("New: %v, want that a pipe is no key set", err)
	}
}
