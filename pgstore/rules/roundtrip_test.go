// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/metehq/mete/pgstore/rules"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policytest"
)

// corpus returns policy files in JSON: all valid files of package policy's tests and fuzz corpus. It adds files
// that are hard to express as rows.
func corpus(t testing.TB) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for _, pattern := range []string{"../../policy/testdata/seeds/*", "../../policy/testdata/bad/*.json", "testdata/files/*.json"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(paths), err)
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			files[filepath.Base(path)] = data
		}
	}
	paths, err := filepath.Glob("../../policy/testdata/fuzz/FuzzLoad/*")
	if err != nil {
		t.Fatal(err)
	}
	literal := regexp.MustCompile(`(?s)\[\]byte\((".*")\)`)
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if m := literal.FindSubmatch(data); m != nil {
			if text, err := strconv.Unquote(string(m[1])); err == nil {
				files[filepath.Base(path)] = []byte(text)
			}
		}
	}
	return files
}

// fromFile imports a file into a set of rows, with IDs as in a database.
func fromFile(t testing.TB, data []byte) *rules.Set {
	t.Helper()
	s := &rules.Set{Revision: 1}
	if err := s.Import(data, true); err != nil {
		t.Fatalf("import of %s: %v", data, err)
	}
	return numbered(s)
}

// numbered adds IDs to rows, and converts their specs to the form of jsonb.
func numbered(s *rules.Set) *rules.Set {
	for i := range s.Rules {
		r := &s.Rules[i]
		r.ID, r.Spec = int64(i+1), jsonb(r.Spec)
	}
	return s
}

// jsonb writes JSON like PostgreSQL: in a different order, with spaces.
func jsonb(text json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if err := json.Indent(&b, text, " ", "\t"); err != nil {
		return text
	}
	return b.Bytes()
}

// valuesOf returns the attribute values in a file, for requests.
func valuesOf(data []byte) map[string][]string {
	values := map[string][]string{}
	var walk func(attribute string, v any)
	walk = func(attribute string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, inside := range v {
				if a, err := policy.NormalizeAttribute(k); err == nil && k != "not" {
					walk(a, inside)
					continue
				}
				walk(attribute, inside)
			}
		case []any:
			for _, inside := range v {
				walk(attribute, inside)
			}
		case string:
			values[attribute] = append(values[attribute], v, v+"1")
		case json.Number:
			values[attribute] = append(values[attribute], v.String())
		}
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) == nil {
		walk("", v)
	}
	return values
}

// TestRoundTrip_Files proves that the rows of every file, and their export, decide like the file. An import of
// the export changes no row.
func TestRoundTrip_Files(t *testing.T) {
	sound := 0
	for name, data := range corpus(t) {
		m, err := policytest.Load(data, options)
		if err != nil {
			continue
		}
		sound++
		values := valuesOf(data)
		set := fromFile(t, data)
		sameDecisions(t, name+", as rows", m, compile(t, set), values)

		file := set.Export()
		sameDecisions(t, name+", exported", m, load(t, file), values)

		again := fromFile(t, file)
		sameDecisions(t, name+", exported and imported", m, compile(t, again), values)
		sameDecisions(t, name+", exported twice", m, load(t, again.Export()), values)
		before := rowsText(set)
		if err := set.Import(file, true); err != nil || rowsText(set) != before {
			t.Errorf("%s: importing the export makes%s\nof%s (%v)", name, rowsText(set), before, err)
		}
	}
	if sound < 8 {
		t.Errorf("only %d files of the corpus have no mistakes", sound)
	}
}

// FuzzRoundTrip proves that a valid policy has the same meaning as rows, and as their export.
func FuzzRoundTrip(f *testing.F) {
	for _, data := range corpus(f) {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := policytest.Load(data, options)
		if err != nil {
			return
		}
		s := &rules.Set{Revision: 1}
		if err := s.Import(data, true); err != nil {
			return // it has a zero character
		}
		numbered(s)
		values := valuesOf(data)
		sameDecisions(t, "rows of "+string(data), m, compile(t, s), values)
		file := s.Export()
		sameDecisions(t, "export of "+string(data), m, load(t, file), values)
		sameDecisions(t, "rows of the export of "+string(data), m, compile(t, fromFile(t, file)), values)
	})
}
