// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/metehq/mete/api"
)

// describedTypes are the Go types of objects in openapi.json. Types of their members are
// found by themselves.
var describedTypes = []any{
	api.Me{}, api.Rules{}, api.RequestText{}, api.ParsedRequest{}, api.Traffic{}, api.TrafficState{}, api.TrafficSamples{}, api.WatchEvent{}, api.WatchTrouble{},
	api.Violations{}, api.ViolationHistogram{}, api.Play{}, api.PlayResult{}, api.PlayPresets{}, api.BucketReset{},
}

// otherNames are types whose schema has another name.
var otherNames = map[string]string{"KeyPart": "TopPart", "Rate": "BucketRate"}

// A Go type and its schema have the same members, and the same ones may be left out.
func TestOpenAPI_TypesOfMembers(t *testing.T) {
	var doc struct {
		Components struct {
			Schemas map[string]struct {
				Required   []string
				Properties map[string]json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(openAPI, &doc); err != nil {
		t.Fatal(err)
	}
	checked := map[reflect.Type]bool{}
	var check func(x reflect.Type)
	check = func(x reflect.Type) {
		for x.Kind() == reflect.Pointer || x.Kind() == reflect.Slice || x.Kind() == reflect.Map {
			x = x.Elem()
		}
		_, written := reflect.New(x).Interface().(json.Marshaler)
		if x.Kind() != reflect.Struct || written || checked[x] {
			return
		}
		checked[x] = true
		name := x.Name()
		if other, ok := otherNames[name]; ok {
			name = other
		}
		schema, ok := doc.Components.Schemas[name]
		if !ok {
			t.Errorf("openapi.json has no schema %s", name)
			return
		}
		if len(schema.Properties) == 0 { // put together of others
			return
		}
		var members, required []string
		for _, f := range reflect.VisibleFields(x) {
			if f.Anonymous {
				continue
			}
			member, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			if members = append(members, member); options == "" {
				required = append(required, member)
			}
			if _, ok := schema.Properties[member]; !ok {
				t.Errorf("the schema %s lacks %s", name, member)
			}
			check(f.Type)
		}
		for member := range schema.Properties {
			if !slices.Contains(members, member) {
				t.Errorf("the type %s lacks %s of its schema", name, member)
			}
		}
		slices.Sort(required)
		slices.Sort(schema.Required)
		if !slices.Equal(required, schema.Required) {
			t.Errorf("%s: the type always has %q, and the schema %q", name, required, schema.Required)
		}
	}
	for _, x := range describedTypes {
		check(reflect.TypeOf(x))
	}
	if len(checked) < 40 {
		t.Errorf("only %d types were compared", len(checked))
	}
}
