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
