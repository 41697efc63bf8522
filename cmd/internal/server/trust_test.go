// SPDX-License-Identifier: Apache-2.0

package server_test

import (
	"crypto/ed25519"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/cmd/internal/policysign"
	"github.com/metehq/mete/cmd/internal/server"
	"github.com/metehq/mete/internal/testkit"
)

// A signer has a key for policies.
type signer struct {
	private ed25519.PrivateKey
	public  string // the file
}

func newSigner(t *testing.T) signer {
	t.Helper()
	name := filepath.Join(t.TempDir(), "key")
	if err := policysign.CreateKeyPair(name+".pem", name+".pub.pem"); err != nil {
		t.Fatal(err)
	}
	private, err := policysign.ReadPrivateKey(name + ".pem")
	if err != nil {
		t.Fatal(err)
	}
	return signer{private, name + ".pub.pem"}
}

// sign writes the signature of text next to path.
func (s signer) sign(t *testing.T, path, text string) {
	t.Helper()
	write(t, path+policysign.Suffix, string(policysign.Sign(s.private, []byte(text))))
}

func TestSigned_AtTheStart(t *testing.T) {
	t.Parallel()
	operator, other := newSigner(t), newSigner(t)
	c := testConfig()
	c.Policy, c.PolicyKeys = policyFile(t, burst("1")), []string{operator.public}
	refused := func(what string) {
		t.Helper()
		if s, err := server.New(t.Context(), c, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "no valid signature") {
			if s != nil {
				s.Close()
			}
			t.Errorf("%s: %v, want that there is no valid signature", what, err)
		}
	}
	refused("unsigned")
	other.sign(t, c.Policy, burst("1"))
	refused("by another key")
	operator.sign(t, c.Policy, burst("2"))
	refused("of other contents")
	operator.sign(t, c.Policy, burst("1"))
	start(t, c)
	c.PolicyKeys = append(c.PolicyKeys, filepath.Join(t.TempDir(), "missing.pem"))
	if _, err := server.New(t.Context(), c, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "policy key: ") {
		t.Errorf("a key that is not there: %v, want an error about it", err)
	}
}

// The active policy is signed, in whichever order file and signature change.
func TestSigned_WhenItChanges(t *testing.T) {
	t.Parallel()
	old, successor := newSigner(t), newSigner(t)
	c := testConfig()
	c.Policy, c.PolicyKeys = policyFile(t, burst("1")), []string{old.public, successor.public}
	old.sign(t, c.Policy, burst("1"))
	s := start(t, c)
	if got := s.take("192.0.2.1"); got != 200 {
		t.Fatalf("first take: %d, want 200", got)
	}

	write(t, c.Policy, burst("2"))
	testkit.Until(t, "the unsigned file is noticed", func() bool { return s.log.Count("policy not signed, old policy stays active") == 1 })
	if got := s.take("192.0.2.1"); got != 429 {
		t.Errorf("under the unsigned file: %d, want 429 by the old policy", got)
	}
	successor.sign(t, c.Policy, burst("2"))
	testkit.Until(t, "the signature is noticed", func() bool { return s.log.Count("policy reloaded") == 1 })
	if got := s.take("192.0.2.1"); got != 200 {
		t.Errorf("under the signed file: %d, want 200", got)
	}
	if n := s.log.Count("not signed"); n != 1 {
		t.Errorf("logged %d times that it was not signed, want 1:\n%s", n, s.log)
	}

	if err := os.Remove(c.Policy + policysign.Suffix); err != nil {
		t.Fatal(err)
	}
	s.server.Reload()
	testkit.Until(t, "the missing signature is noticed", func() bool { return s.log.Count("not signed") >= 2 }) // both by itself and when asked
	if got := s.take("192.0.2.1"); got != 429 {
		t.Errorf("without a signature: %d, want 429 by the policy in force", got)
	}
}

// bundle is a bundle with that head, whose buckets hold so many tokens.
func bundle(head, tokens string) string {
	rule := strings.TrimPrefix(burst(tokens), "rules:\n")
	return head + "policies:\n  - id: p\n    spec:\n      rules:\n    " + strings.ReplaceAll(rule, "\n", "\n    ") + "\n"
}

func TestReload_BundleVersionsGrow(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.ReloadInterval = 0
	first := bundle("bundle_version: 7\n", "1")
	c.Policy = policyFile(t, first)
	s := start(t, c)
	reloaded := 0
	for _, tt := range []struct {
		what, text, refused string
	}{
		{"the same", first, ""},
		{"lower", bundle("bundle_version: 6\n", "1"), "it is 6, and 7 is active; to roll back, publish the old rules with a higher one"},
		{"equal, with other contents", bundle("bundle_version: 7\n", "2"), "7 is active with other contents"},
		{"none", bundle("", "2"), "the file has none, and 7 is active"},
		{"no bundle at all", burst("2"), "the file has none, and 7 is active"},
		{"what is in force, after these", first, ""},
		{"higher", bundle("bundle_version: 8\n", "2"), ""},
		{"what was in force before", first, "it is 7, and 8 is active"},
	} {
		write(t, c.Policy, tt.text)
		refused := s.log.Count("policy rejected, old policy stays active")
		s.server.Reload()
		if tt.refused == "" {
			reloaded++
			testkit.Until(t, tt.what, func() bool { return s.log.Count("policy reloaded") == reloaded })
			continue
		}
		testkit.Until(t, tt.what, func() bool { return s.log.Count("policy rejected, old policy stays active") == refused+1 })
		if s.log.Count(tt.refused) == 0 {
			t.Errorf("%s: no %q in the log:\n%s", tt.what, tt.refused, s.log)
		}
	}
	if got := s.server.Policy().Version(); got != 8 {
		t.Errorf("version %d is in force, want 8", got)
	}
}

// Without an active version, any bundle may follow. After that, versions must increase.
func TestReload_BundleVersionsBegin(t *testing.T) {
	t.Parallel()
	c := testConfig()
	c.Policy = policyFile(t, burst("1"))
	s := start(t, c)
	for i, text := range []string{burst("2"), bundle("bundle_version: 1\n", "3")} {
		write(t, c.Policy, text)
		testkit.Until(t, "the reload", func() bool { return s.log.Count("policy reloaded") == i+1 })
	}
	write(t, c.Policy, burst("1"))
	testkit.Until(t, "the refusal", func() bool { return s.log.Count("policy rejected") == 1 })
}

// An expired policy stays active, and is reported once.
func TestPolicy_ExpiresInForce(t *testing.T) {
	t.Parallel()
	c := testConfig()
	at := time.Now().Add(5 * time.Second).UTC() // a busy machine takes its time to start a server
	c.Policy = policyFile(t, bundle(fmt.Sprintf("bundle_version: 1\nexpires_at: %q\n", at.Format(time.RFC3339Nano)), "1"))
	s := start(t, c)
	s.hasMetrics("mete_policy_expired 0")
	testkit.Until(t, "the policy expires", func() bool { return s.log.Count("POLICY EXPIRED, still enforced") == 1 })
	s.hasMetrics("mete_policy_expired 1")
	for i, want := range []int{200, 429} {
		if got := s.take("192.0.2.1"); got != want {
			t.Errorf("take %d under the expired policy: %d, want %d", i, got, want)
		}
	}
	write(t, c.Policy, bundle("bundle_version: 2\n", "1"))
	testkit.Until(t, "another takes its place", func() bool { return s.log.Count("policy reloaded") == 1 })
	if text := s.metricsText(); strings.Contains(text, "mete_policy_expire") {
		t.Errorf("a policy that does not expire has metrics about it:\n%s", text)
	}
}
