// SPDX-License-Identifier: Apache-2.0

//go:build unix

package server_test

import (
	"os"
	"syscall"
	"testing"

	"github.com/metehq/mete/cmd/internal/policysign"
	"github.com/metehq/mete/internal/testkit"
)

// Reading a pipe never ends. A pipe in place of the policy or its signature must not block later reloads
// or the shutdown.
func TestReload_Pipe(t *testing.T) {
	t.Parallel()
	operator := newSigner(t)
	c := testConfig()
	c.Policy, c.PolicyKeys = policyFile(t, burst("1")), []string{operator.public}
	operator.sign(t, c.Policy, burst("1"))
	s := start(t, c)
	for i, path := range []string{c.Policy, c.Policy + policysign.Suffix} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		if path != c.Policy {
			write(t, c.Policy, burst("3"))
		}
		testkit.Until(t, "the pipe is noticed", func() bool { return s.log.Count("a regular file") > i })
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		write(t, c.Policy, burst("2"))
		operator.sign(t, c.Policy, burst("2"))
		testkit.Until(t, "the file is read again", func() bool { return s.take("192.0.2.9") == 200 || s.log.Count("policy reloaded") > 0 })
	}
}
