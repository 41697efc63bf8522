// SPDX-License-Identifier: Apache-2.0

package proctest_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// A recorder is a test that fails without failing the test it runs in.
type recorder struct {
	testing.TB
	failed   bool
	log      []string
	cleanups []func()
}

// record runs body as a test of its own, with its cleanups, and returns its log.
func record(t *testing.T, body func(testing.TB)) string {
	t.Helper()
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		body(r)
	}()
	<-done
	for _, f := range slices.Backward(r.cleanups) {
		f()
	}
	if !r.failed {
		t.Error("the test did not fail")
	}
	return strings.Join(r.log, "\n")
}

func (r *recorder) Helper()          {}
func (r *recorder) Failed() bool     { return r.failed }
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Logf(format string, args ...any) {
	r.log = append(r.log, fmt.Sprintf(format, args...))
}

func (r *recorder) Errorf(format string, args ...any) {
	r.Logf(format, args...)
	r.failed = true
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}
