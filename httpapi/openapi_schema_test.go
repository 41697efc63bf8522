// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/api"
)

// A schema is the part of a JSON Schema that a Go type determines.
type schema struct {
	Ref        string `json:"$ref"`
	Type       any    // a string or a list
	Required   []string
	Properties map[string]*schema
	Items      *schema
	OneOf      []*schema
	AllOf      []*schema
}

// wireTypes are the types of package api that openapi.json describes, by the name of the
// component. Types without a component of their own name are of several ones.
var wireTypes = map[string]reflect.Type{
	"ResetBucket": reflect.TypeFor[api.BucketChange](),
	"TakeBucket":  reflect.TypeFor[api.BucketChange](),
	"NewOverride": reflect.TypeFor[api.Override](),
	"Denial":      reflect.TypeFor[api.Problem](),
}

func init() {
	var add func(t reflect.Type)
	add = func(t reflect.Type) {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
			t = t.Elem()
		}
		if _, own := reflect.New(t).Interface().(json.Marshaler); t.Kind() != reflect.Struct || own || wireTypes[t.Name()] != nil {
			return
		}
		wireTypes[t.Name()] = t
		for i := range t.NumField() {
			add(t.Field(i).Type)
		}
	}
	for _, x := range []any{ // the types of members are found by themselves
		api.Request{}, api.Batch{}, api.Decision{}, api.Decisions{}, api.Held{}, api.Problem{}, api.Explanation{}, api.Overrides{}, api.Top{}, api.Bucket{},
		api.BucketReset{}, api.BucketTake{}, api.RuleChange{}, api.RuleReset{}, api.Activities{}, api.Reload{}, api.Me{}, api.Rules{}, api.RequestText{}, api.ParsedRequest{},
		api.Traffic{}, api.TrafficState{}, api.TrafficSamples{}, api.WatchEvent{}, api.WatchTrouble{}, api.Violations{}, api.ViolationHistogram{},
		api.HoldRequest{}, api.Hold{}, api.HoldSettlement{}, api.TokenUsage{}, api.HoldRelease{}, api.HoldRenewal{}, api.HoldStatus{}, api.Play{}, api.PlayResult{}, api.PlayPresets{}, api.AI{},
	} {
		add(reflect.TypeOf(x))
	}
}

// untyped are components without members in Go: empty objects, members of a caller's choice,
// and types that JSON has as arrays.
var untyped = []string{"AllDone", "AllHeld", "Attributes", "Done", "Health", "OverrideFields", "PlayDecision", "Point", "RuleCounts"}

// The components of openapi.json and the types of package api have the same members, of the
// same types, and require the same ones.
func TestOpenAPI_SchemasAreTheTypes(t *testing.T) {
	all := readSchemas(t)
	for name, s := range all {
		goType, ok := wireTypes[name]
		if !ok {
			if !slices.Contains(untyped, name) {
				t.Errorf("component %s has no type in package api", name)
			}
			continue
		}
		properties := s.members(all)
		fields := fieldsOf(goType)
		if name == "ResetBucket" {
			delete(fields, "tokens")
		}
		for member := range properties {
			if _, ok := fields[member]; !ok {
				t.Errorf("%s: the document has %q, and the type has not", name, member)
			}
		}
		for member, field := range fields {
			p := properties[member]
			if p == nil {
				t.Errorf("%s: the type has %q, and the document has not", name, member)
				continue
			}
			got, want := p.kind(), field.kind
			if name == "Request" || name == "HoldRequest" { // in which null is as left out
				got = strings.TrimSuffix(got, "|null")
			}
			if !fits(got, want) {
				t.Errorf("%s.%s: the document has the type %s, and the type is %s", name, member, got, want)
			}
			if required := slices.Contains(s.Required, member); required == field.optional && !excused[name+"."+member] {
				t.Errorf("%s.%s: the document says required %v, and the type says %v", name, member, required, !field.optional)
			}
		}
	}
	for name := range wireTypes {
		if all[name] == nil && name != "ServerState" { // which is part of TrafficState alone
			t.Errorf("type %s has no component in openapi.json", name)
		}
	}
}

// excused are members that the document requires otherwise than the type: of a request or a
// denial, where one type has several components.
var excused = map[string]bool{
	"ResetBucket.reason": true, "TakeBucket.tokens": true, "NewOverride.id": true, "Denial.type": true, "Denial.detail": true,
}

// A wireField is a member of a Go type.
type wireField struct {
	kind     string
	optional bool
}

// fieldsOf returns the members of a struct, as encoding/json writes them.
func fieldsOf(t reflect.Type) map[string]wireField {
	fields := map[string]wireField{}
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			maps.Copy(fields, fieldsOf(f.Type))
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		optional := options == "omitempty" || options == "omitzero"
		kind := kindOf(f.Type)
		if f.Type.Kind() == reflect.Pointer && !optional {
			kind += "|null"
		}
		fields[name] = wireField{kind, optional}
	}
	return fields
}

func kindOf(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[api.Seconds]():
		return "seconds"
	case reflect.TypeFor[api.Amount](), reflect.TypeFor[api.Instant](), reflect.TypeFor[json.Number]():
		return "number"
	case reflect.TypeFor[time.Time]():
		return "string"
	case reflect.TypeFor[json.RawMessage]():
		return "raw"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return kindOf(t.Elem())
	case reflect.Array:
		return t.Name()
	case reflect.Interface:
		return "any"
	case reflect.Slice:
		return "array of " + kindOf(t.Elem())
	case reflect.Map:
		return "object"
	case reflect.Struct:
		return t.Name()
	case reflect.Bool:
		return "boolean"
	case reflect.String:
		return "string"
	case reflect.Float64:
		return "number"
	}
	return "integer"
}

// fits reports whether the type of a schema fits a Go type. A duration may be null, if
// it can be without end. Raw JSON is of a type that only the document knows.
func fits(got, want string) bool {
	switch want {
	case "raw":
		return got == "object" || strings.HasPrefix(got, "array of ")
	case "array of raw":
		return strings.HasPrefix(got, "array of ")
	case "array of array of any":
		return strings.HasPrefix(got, "array of array of ")
	case "object": // a nil map is null
		return got == "object" || got == "object|null"
	case "seconds":
		return got == "number" || got == "number|null"
	}
	return got == want
}

// kind names the type of a schema as kindOf names a Go type.
func (s *schema) kind() string {
	switch {
	case s.Ref != "":
		name := strings.TrimPrefix(s.Ref, "#/components/schemas/")
		if name == "Attributes" {
			return "object"
		}
		return name
	case len(s.OneOf) == 2 && s.OneOf[1].Type == "null":
		return s.OneOf[0].kind() + "|null"
	case len(s.OneOf) > 0:
		return "several"
	}
	kinds, ok := s.Type.([]any)
	if !ok {
		kinds = []any{s.Type}
	}
	text, _ := kinds[0].(string)
	if text == "array" && s.Items != nil {
		text += " of " + s.Items.kind()
	}
	if len(kinds) == 2 && kinds[1] == "null" {
		text += "|null"
	}
	return text
}

// members returns the properties of a component, with the properties of its parts.
func (s *schema) members(all map[string]*schema) map[string]*schema {
	found := maps.Clone(s.Properties)
	if found == nil {
		found = map[string]*schema{}
	}
	for _, part := range s.AllOf {
		maps.Copy(found, all[part.kind()].members(all))
	}
	return found
}

func readSchemas(t *testing.T) map[string]*schema {
	t.Helper()
	text, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Components struct{ Schemas map[string]*schema }
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	return doc.Components.Schemas
}

// Each answer in openapi.json that has a type can be read into it, and is written again with
// the same members.
func TestOpenAPI_ExamplesFitTheTypes(t *testing.T) {
	text, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	type content map[string]struct {
		Schema   *schema
		Examples map[string]struct{ Value json.RawMessage }
	}
	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	checked := 0
	for path, item := range doc.Paths {
		delete(item, "servers")
		for method, text := range item {
			var o struct {
				RequestBody struct{ Content content }
				Responses   map[string]struct{ Content content }
			}
			if err := json.Unmarshal(text, &o); err != nil {
				t.Fatalf("%s %s: %v", method, path, err)
			}
			contents := []content{o.RequestBody.Content}
			for _, r := range o.Responses {
				contents = append(contents, r.Content)
			}
			for _, c := range contents {
				for _, m := range c {
					for name, e := range m.Examples {
						if err := m.Schema.roundTrip(e.Value); err != nil {
							t.Errorf("%s %s, example %s: %v", method, path, name, err)
						}
						checked++
					}
				}
			}
		}
	}
	if checked < 30 {
		t.Errorf("%d examples were checked, want all", checked)
	}
}

// roundTrip reads an example into the Go type of the schema, and compares the JSON of the
// result. A schema with several types needs one that fits.
func (s *schema) roundTrip(example []byte) error {
	choices := s.OneOf
	if len(choices) == 0 {
		choices = []*schema{s}
	}
	var last error
	for _, choice := range choices {
		goType, ok := wireTypes[choice.kind()]
		if !ok {
			return nil
		}
		value := reflect.New(goType)
		d := json.NewDecoder(bytes.NewReader(example))
		d.DisallowUnknownFields()
		if last = d.Decode(value.Interface()); last != nil {
			continue
		}
		again, err := json.Marshal(value.Interface())
		if err != nil {
			return err
		}
		var want, got any
		if err := errors.Join(json.Unmarshal(example, &want), json.Unmarshal(again, &got)); err != nil {
			return err
		}
		if members, ok := got.(map[string]any); ok && members["id"] == "" { // a new override
			delete(members, "id")
		}
		if reflect.DeepEqual(got, want) {
			return nil
		}
		last = fmt.Errorf("the type writes %s, want %s", again, example)
	}
	return last
}
