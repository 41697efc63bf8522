// SPDX-License-Identifier: Apache-2.0

package openapi_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/metehq/mete/proof/meted"
)

// problem returns an error if an answer without an operation is not a valid problem.
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

// The validator rejects a missing or an additional member.
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

// The examples fit a server without settings, as doc/http.md states.
func TestExamples_AreOfTheBuiltInPolicy(t *testing.T) {
	server := meted.Start(t, "")
	s := describe(t, server.URL, server.AdminURL)
	take := s.doc.Paths.Value("/v1/take").Post
	body, err := json.Marshal(take.RequestBody.Value.Content["application/json"].Examples["allowed"].Value.Value)
	if err != nil {
		t.Fatal(err)
	}
	var got, want any = nil, take.Responses.Status(200).Value.Content["application/json"].Examples["allowed"].Value.Value
	a := s.ask(t, question{base: s.main, method: "POST", target: "/v1/take", body: string(body)})
	if err := json.Unmarshal(a.body, &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("the first take of a new server: %s (%v), want %v", a.body, err, want)
	}
	// Without admin_tokens, one may look from the same machine, and the token of the
	// server is for the rest.
	s.askRow(t, row{where: "admin", method: "GET", target: "/v1/overrides", status: 200})
	s.askRow(t, row{where: "admin", method: "POST", target: "/v1/reload", status: 401})
	s.askRow(t, row{where: "admin", method: "POST", target: "/v1/reload", status: 200, fields: []string{"Authorization", "Bearer " + server.Token()}})
}
