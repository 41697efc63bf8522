// SPDX-License-Identifier: Apache-2.0

package policyyaml_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policyyaml"
)

// brokenNow is when the policies in testdata/broken are read.
var brokenNow = time.Date(2026, time.March, 1, 0, 0, 0, 0, time.UTC)

// Every policy in testdata/broken has a typical error, and a file with all reported errors, places and hints.
// Update these files with go test -update, then read them.
func TestBroken(t *testing.T) {
	files, err := filepath.Glob("testdata/broken/*.yaml")
	if err != nil || len(files) < 100 {
		t.Fatalf("%d broken policies, %v; want at least 100", len(files), err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, err = policyyaml.Parse(name, data, policy.Options{Now: brokenNow})
		var mistakes policyyaml.Errors
		if !errors.As(err, &mistakes) {
			t.Errorf("%s: error %v, want a policyyaml.Errors", name, err)
			continue
		}
		for _, m := range mistakes {
			if m.Line == 0 || m.Column == 0 || m.Reason == "" {
				t.Errorf("%s: %v has no place or no reason", name, m)
			}
		}
		golden, got := strings.TrimSuffix(file, ".yaml")+".want", mistakes.Error()+"\n"
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(golden); err != nil || string(want) != got {
			t.Errorf("%s: %v; mistakes are\n%swant\n%s", name, err, got, want)
		}
	}
}
