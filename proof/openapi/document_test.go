// SPDX-License-Identifier: Apache-2.0

package openapi_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// problem says why an answer is none, for what the document has no operation.
func (s *service) problem(a answer) error {
	if media := a.header.Get("Content-Type"); media != "application/problem+json" {
		return fmt.Errorf("it is of type %q", media)
	}
	var value any
	if err := json.Unmarshal(a.body, &value); err != nil {
		return err
	}
	return s.doc.ValidateSchemaJSON(s.doc.Components.Schemas["Problem"].Value, value, openapi3.EnableJSONSchema2020())
}

// The judge is one: what has a member more, or one less, is not what the document says.
func TestDocument_IsStrict(t *testing.T) {
	s := newService(t)
	for name, value := range map[string]string{
		"Decision": `{"allowed":true,"rule":"","reason":"","retry_after":0,"degraded":false,"limits":[]}`,
		"Problem":  `{"title":"Not Found","status":404}`,
		"Done":     `{}`,
		"Health":   `{"status":"ok"}`,
		"OverrideStatus": `{"id":"o","action":"block","match":{"path":"/x"},"reason":"r","author":"a","created_at":"2026-05-04T12:00:00Z",
			"expires_at":"2026-05-04T13:00:00Z","state":"in_force","source":"admin"}`,
	} {
		schema := s.doc.Components.Schemas[name].Value
		var object map[string]any
		if err := json.Unmarshal([]byte(value), &object); err != nil {
			t.Fatal(err)
		}
		if err := s.doc.ValidateSchemaJSON(schema, object, openapi3.EnableJSONSchema2020()); err != nil {
			t.Errorf("%s %s: %v", name, value, err)
		}
		object["unknown"] = true
		if s.doc.ValidateSchemaJSON(schema, object, openapi3.EnableJSONSchema2020()) == nil {
			t.Errorf("%s: a member that it does not have is let pass", name)
		}
		delete(object, "unknown")
		for _, member := range schema.Required {
			kept := object[member]
			delete(object, member)
			if s.doc.ValidateSchemaJSON(schema, object, openapi3.EnableJSONSchema2020()) == nil {
				t.Errorf("%s: it is let pass without %s", name, member)
			}
			object[member] = kept
		}
	}
}
