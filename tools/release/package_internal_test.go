// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// writeTestPackages writes the packages of a version, with an empty program, and returns the
// folder.
func writeTestPackages(t *testing.T, version string) string {
	t.Helper()
	r := &release{version: version, source: filepath.Join("..", ".."), out: t.TempDir(), modulePath: "github.com/metehq/mete", time: time.Unix(1_767_323_045, 0)}
	path := filepath.Join(t.TempDir(), "mete")
	if err := os.WriteFile(path, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	var programs []*program
	for _, on := range platforms {
		programs = append(programs, &program{platform: on, path: path})
	}
	if err := r.writePackages(programs, nil); err != nil {
		t.Fatal(err)
	}
	return r.out
}

// Release pages keep these names: they replace a ~ in others.
func TestWritePackages_Names(t *testing.T) {
	for version, want := range map[string][]string{
		"v0.1.0":      {"mete-0.1.0-1.aarch64.rpm", "mete-0.1.0-1.x86_64.rpm", "mete_0.1.0_amd64.deb", "mete_0.1.0_arm64.deb"},
		"v0.1.0-rc.1": {"mete-0.1.0-rc.1-1.aarch64.rpm", "mete-0.1.0-rc.1-1.x86_64.rpm", "mete_0.1.0-rc.1_amd64.deb", "mete_0.1.0-rc.1_arm64.deb"},
	} {
		entries, err := os.ReadDir(writeTestPackages(t, version))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, entry := range entries {
			got = append(got, entry.Name())
		}
		if !slices.Equal(got, want) {
			t.Errorf("packages of %s: %q, want %q", version, got, want)
		}
	}
}

// dpkg and rpm take a ~ for earlier than nothing.
func TestPackageVersion(t *testing.T) {
	for version, want := range map[string]string{"v0.1.0": "0.1.0", "v0.1.0-rc.1": "0.1.0~rc.1", "v0.1.0-dev-x.1": "0.1.0~dev.x.1"} {
		if got := (&release{version: version}).packageVersion(); got != want {
			t.Errorf("package version of %s: %s, want %s", version, got, want)
		}
	}
}
