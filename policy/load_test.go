// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policytest"
)

// mistakesIn returns all errors of a file, with the errors of its tests.
func mistakesIn(file []byte) (es policy.Errors) {
	_, err := policytest.Load(file, policy.Options{})
	errors.As(err, &es)
	return es
}

// Every file in testdata/bad has a list of its errors, one per line. Update the lists with go test -update.
func TestBad(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("testdata/bad: %d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			es := mistakesIn(data)
			if len(es) == 0 {
				t.Fatal("no mistakes, want some")
			}
			for _, e := range es {
				if !resolves(data, e.Path) {
					t.Errorf("%v: nothing stands at %q", e, e.Path)
				}
			}
			golden := strings.TrimSuffix(file, ".json") + ".txt"
			got := []byte(es.Error() + "\n")
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("mistakes are\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// resolves reports whether a JSON Pointer leads to a value.
func resolves(data []byte, pointer string) bool {
	var v any
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if dec.Decode(&v) != nil {
		return pointer == ""
	}
	for _, step := range strings.Split(pointer, "/")[1:] {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		switch parent := v.(type) {
		case map[string]any:
			child, ok := parent[step]
			if !ok {
				return false
			}
			v = child
		case []any:
			i := 0
			for _, c := range step {
				i = i*10 + int(c-'0')
			}
			if i >= len(parent) {
				return false
			}
			v = parent[i]
		default:
			return false
		}
	}
	return true
}

// All ten errors of a policy are reported, and no others.
func TestTenMistakes(t *testing.T) {
	data, err := os.ReadFile("testdata/bad/ten.json")
	if err != nil {
		t.Fatal(err)
	}
	_, err = policy.Load(data, policy.Options{})
	var es policy.Errors
	if !errors.As(err, &es) || len(es) != 10 {
		t.Errorf("%d mistakes, want 10:\n%v", len(es), err)
	}
	for _, e := range es {
		if e.Path == "" || e.Reason == "" {
			t.Errorf("%+v: has no place or no reason", e)
		}
	}
}
