// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metehq/mete/cmd/internal/config"
)

// A policy that is a database is no path, and only its files are relative to that of
// the settings.
func TestLoad_PolicyInADatabase(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "mete.yaml")
	for policy, want := range map[string]string{
		"postgres://u@h/d?schema=x":    "postgres://h/d?schema=x",
		"postgres://u@h/d?passfile=pw": "postgres://h/d?passfile=" + filepath.Join(dir, "pw"),
		"policy.yaml":                  filepath.Join(dir, "policy.yaml"),
	} {
		if err := os.WriteFile(path, []byte("policy: "+policy+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := load(path, nil)
		got := c.Policy
		if c.PolicyDatabase != nil {
			got = c.PolicyDatabase.String()
		}
		if err != nil || got != want {
			t.Errorf("policy %s: got %q, %v, want %q", policy, got, err, want)
		}
	}
	_, err := load("", []config.Setting{{Key: "policy", Value: "postgres://u:secret@h:x/d"}})
	if err == nil || !strings.Contains(err.Error(), "policy: ") || strings.Contains(err.Error(), "secret") {
		t.Errorf("a URL that is none: %v, want what is wrong and no password", err)
	}
}

// A policy at an address is no path, and needs a key and a directory. No error has its password.
func TestLoad_PolicyAtAnAddress(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "mete.yaml")
	text := "policy: https://u:canary@host/policy.yaml\npolicy_keys: [release.pub.pem]\npolicy_ca: ca.pem\nstate_directory: state\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := load(path, nil)
	if err != nil || c.PolicyBundle == nil || c.PolicyBundle.String() != "https://u:canary@host/policy.yaml" || c.PolicyCA != filepath.Join(dir, "ca.pem") || c.StateDirectory != filepath.Join(dir, "state") {
		t.Errorf("got %v, %q, %q, %v", c.PolicyBundle, c.PolicyCA, c.StateDirectory, err)
	}
	for policy, wants := range map[string][]string{
		"https://u:canary@host/policy.yaml": {"policy_keys: must name", "state_directory: must name"},
		"http://u:canary@host/policy.yaml":  {"policy: http:// is allowed only for loopback addresses"},
		"https://u:canary@host":             {"policy: the address has no file"},
	} {
		_, err := load("", []config.Setting{{Key: "policy", Value: policy}})
		for _, want := range wants {
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "canary") {
				t.Errorf("policy %s: %v, want %q and no password", policy, err, want)
			}
		}
	}
	if _, err := load("", []config.Setting{{Key: "policy_ca", Value: "ca.pem"}}); err == nil || !strings.Contains(err.Error(), "policy_ca: requires a policy at an https:// address") {
		t.Errorf("policy_ca without an address: %v", err)
	}
}
