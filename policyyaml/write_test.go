// SPDX-License-Identifier: Apache-2.0

package policyyaml_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policyyaml"
)

// decoded is a JSON text with its numbers as they are written.
func decoded(t *testing.T, data []byte) (v any) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	return v
}

// Every example, as JSON, as YAML again and back: nothing is lost.
func TestWriteYAML_ReadsBack(t *testing.T) {
	files, err := filepath.Glob("../examples/*/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d examples, %v", len(files), err)
	}
	for _, file := range files {
		if _, err := policyyaml.LoadFile(file); err != nil {
			continue // it is of another program
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		asJSON, err := policyyaml.ToJSON(file, data, policy.Options{Prices: policyyaml.PricesBeside(file)})
		if err != nil {
			t.Fatal(err)
		}
		readsBack(t, file, asJSON)
	}
}

func readsBack(t *testing.T, name string, asJSON []byte) {
	t.Helper()
	var yaml bytes.Buffer
	if err := policyyaml.WriteYAML(&yaml, asJSON); err != nil {
		t.Fatal(err)
	}
	again, err := policyyaml.ToJSON("again.yaml", yaml.Bytes(), policy.Options{Prices: policyyaml.PricesBeside(name)})
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, yaml.Bytes())
	}
	if got, want := decoded(t, again), decoded(t, asJSON); !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %v\nwant %v\nby way of\n%s", name, got, want, yaml.Bytes())
	}
}

// The export of database rows, a form that no example has.
func TestWriteYAML_Bundles(t *testing.T) {
	const rule = `{"name": "%s", "limit_keys": ["ip:address"], "mode": "25%%", "headers": ["x", "legacy"], "jitter": "50%%", "limits": [
		{"rps": 1, "burst": 5, "staged_actions": [{"threshold": 50, "action": "warn"}]}, {"algorithm": "cost_based", "budget": 9, "period": "24h"}]}`
	policyOf := func(name string) string {
		return `{"selector": {"pathExact": "/a", "pathPrefix": ["/b"], "methods": "GET"}, "rules": [` + fmt.Sprintf(rule, name) + `], "fallback_limit": ` + fmt.Sprintf(rule, name+"-rest") + `}`
	}
	for _, file := range []string{policyOf("a"), `{"policies": [{"id": "a", "spec": ` + policyOf("a") + `}, {"id": "b", "spec": ` + policyOf("b") + `}]}`} {
		readsBack(t, file, []byte(file))
		var yaml bytes.Buffer
		if err := policyyaml.WriteYAML(&yaml, []byte(file)); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(yaml.String()) {
			if len(line) > 160 {
				t.Errorf("a line of %d letters: %s", len(line), line)
			}
		}
	}
}

// Every string survives a round trip as a string.
func TestWriteYAML_Strings(t *testing.T) {
	values := []string{"on", "Yes", "NULL", "true", "1e3", "1_000", "0x10", "~", "", " x", "x ", "#", "a: b", "a #b", "- a", "[a]", "{a}", "&a", "!a",
		"%", "@", "`", "'", "\"", "\\", "\n", "\t\x1b\u0085\u2028\u2029\ufeff", "é", "😀", "2026-01-02", "12:30:45", ".inf", "=", "<<", "a/b", "free plan", "?"}
	file := map[string]any{"name": "r", "limit_keys": []string{}, "match": map[string]any{"header:x": values, "jwt:a:b#": "x"},
		"description": "line\nline", "algorithm_config": map[string]any{"rps": json.Number("0.10"), "burst": json.Number("2e1")}}
	data, err := json.Marshal(map[string]any{"rules": []any{file}})
	if err != nil {
		t.Fatal(err)
	}
	readsBack(t, "strings", data)
}

func TestToJSON_Fails(t *testing.T) {
	if _, err := policyyaml.ToJSON("x.yaml", []byte("rules: ["), policy.Options{}); err == nil {
		t.Error("a broken file: no error")
	}
}
