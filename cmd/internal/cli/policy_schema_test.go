// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policyyaml"
)

// editorSchema is the schema as an editor reads it.
func editorSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(policy.JSONSchema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("policy.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("policy.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// conforms validates a policy in JSON with the schema.
func conforms(t *testing.T, schema *jsonschema.Schema, data []byte) error {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return err
	}
	return schema.Validate(v)
}

// policiesInDir are all policy files below the directories, as JSON.
func policiesInDir(t *testing.T, dirs ...string) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !slices.Contains([]string{".yaml", ".json"}, filepath.Ext(path)) {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if data, err := policyyaml.ToJSON(path, data, policy.Options{}); err == nil {
				found[path] = data
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// The schema accepts valid policies.
func TestSchema_TakesWhatLoads(t *testing.T) {
	schema := editorSchema(t)
	files := policiesInDir(t, "../../../examples", "../../../policy/testdata/seeds")
	if len(files) < 20 {
		t.Errorf("%d policies: the test says little", len(files))
	}
	for name, data := range files {
		if err := conforms(t, schema, data); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Load rejects every document that the schema rejects. The schema also knows the field names and the forms
// of their values.
func TestSchema_RefusesWhatIsBroken(t *testing.T) {
	schema := editorSchema(t)
	form := []string{"unknown field", "paths have no templates", "mete has no user agent attributes", "is missing", "must be a list", "must be an object", "must be a string", "must be a duration", "must be a number",
		", not of ", "must have at most", "must be epoch", "must be skip", "must be open"}
	seen := 0
	for _, pattern := range []string{"../../../policy/testdata/bad/*.json", "../../../policyyaml/testdata/bad/*.json", "../../../policyyaml/testdata/bad/*.yaml", "../../../policyyaml/testdata/broken/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			_, err = policyyaml.Parse(file, data, policy.Options{})
			asJSON, cerr := policyyaml.AsJSON(file, data)
			if cerr != nil {
				continue // it is not even YAML
			}
			refused := conforms(t, schema, asJSON) != nil
			if err == nil && refused {
				t.Errorf("%s: loads, and the schema refuses it", file)
			}
			var mistakes policyyaml.Errors
			if !errors.As(err, &mistakes) {
				continue
			}
			for _, m := range mistakes {
				if slices.ContainsFunc(form, func(s string) bool { return strings.Contains(m.Reason, s) }) {
					seen++
					if !refused {
						t.Errorf("%s: the schema takes it, though %v", file, m)
					}
					break
				}
			}
		}
	}
	if seen < 30 {
		t.Errorf("%d files with mistakes of form: the test says little", seen)
	}
}

// Every field has a description.
func TestSchema_DescribesEveryField(t *testing.T) {
	var whole struct {
		Defs map[string]struct {
			Properties map[string]struct {
				Description string `json:"description"`
				Ref         string `json:"$ref"`
			} `json:"properties"`
		} `json:"$defs"`
		Properties map[string]struct {
			Description string `json:"description"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(policy.JSONSchema(), &whole); err != nil {
		t.Fatal(err)
	}
	fields := 0
	for name, def := range whole.Defs {
		for field, p := range def.Properties {
			if fields++; p.Description == "" && p.Ref == "" && field != "not" {
				t.Errorf("%s of %s has no description", field, name)
			}
		}
	}
	for field, p := range whole.Properties {
		if p.Description == "" {
			t.Errorf("%s at the top has no description", field)
		}
	}
	if fields < 100 {
		t.Errorf("%d fields: the test says little", fields)
	}
}
