// SPDX-License-Identifier: Apache-2.0

package openapi_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/proof/meted"
)

// A generator makes values of schemas. It knows the keywords in the document's requests. For patterns and
// formats it uses examples.
type generator struct{ *rand.Rand }

func (g generator) value(s *openapi3.Schema) any {
	if alternatives := append(slices.Clone(s.OneOf), s.AllOf...); len(alternatives) > 0 {
		return g.value(alternatives[g.IntN(len(alternatives))].Value)
	}
	switch {
	case s.Type.Includes("null") && g.IntN(4) == 0:
		return nil
	case len(s.Enum) > 0:
		return s.Enum[g.IntN(len(s.Enum))]
	case len(s.Examples) > 0:
		return s.Examples[g.IntN(len(s.Examples))]
	case s.Type.Includes("object"):
		return g.object(s)
	case s.Type.Includes("array"):
		list := make([]any, int(s.MinItems)+g.IntN(4))
		for i := range list {
			list[i] = g.value(s.Items.Value)
		}
		return list
	case s.Type.Includes("number"):
		return json.Number(fmt.Sprintf("%d.%03d", g.IntN(1<<g.IntN(30)), 1+g.IntN(999)))
	case s.Type.Includes("string"):
		return g.text()
	}
	panic(fmt.Sprintf("the generator does not know %+v", s))
}

// names are those of attributes that have no property of their own.
var names = []string{"header:x-api-key", "header:X-Several", "header:x-staged", "header:x-queue", "cookie:session", "query:tenant", "jwt:plan", "tenant", "scope:a b", "x.y-z_1"}

func (g generator) object(s *openapi3.Schema) any {
	made := map[string]any{}
	for name, p := range s.Properties {
		if slices.Contains(s.Required, name) || g.IntN(3) == 0 {
			made[name] = g.value(p.Value)
		}
	}
	if rest := s.AdditionalProperties.Schema; rest != nil {
		for range g.IntN(4) {
			if name := names[g.IntN(len(names))]; !strings.Contains(name, " ") {
				made[strings.ToLower(name)] = g.value(rest.Value)
			}
		}
	}
	return made
}

// text is any text, of letters of one byte to four.
func (g generator) text() string {
	runes := []rune("abz09 -_~%/\\\"\t\x00\x7fé\u2028世🙂")
	text := make([]rune, g.IntN(20))
	for i := range text {
		text[i] = runes[g.IntN(len(runes))]
	}
	return string(text)
}

// makeInvalid changes one thing about a request so that the document does not have it.
func (g generator) makeInvalid(value any) any {
	m, ok := value.(map[string]any)
	if !ok {
		return []any{value}
	}
	if list, ok := m["requests"].([]any); ok && g.IntN(3) > 0 {
		switch g.IntN(3) {
		case 0:
			m["requests"] = []any{}
		case 1:
			m["requests"] = slices.Repeat(list[:1], 101)
		default:
			list[g.IntN(len(list))] = g.makeInvalid(list[0])
		}
		return m
	}
	for name, wrong := range map[string]any{
		"attributes": map[string]any{"header:x": 1}, "cost": -1, "max_wait": "soon", "id": strings.Repeat("x", 129), "unknown": true,
	} { // in any order
		m[name] = wrong
		break
	}
	return m
}

// asked are the operations with a body, and for each the schema of that.
func (s *service) asked() map[string]*openapi3.Schema {
	all := map[string]*openapi3.Schema{}
	for _, path := range []string{"/v1/take", "/v1/peek", "/v1/refund", "/v1/reset", "/v1/explain"} {
		all[path] = s.doc.Paths.Value(path).Post.RequestBody.Value.Content["application/json"].Schema.Value
	}
	return all
}

// askPatiently repeats a request until the rate limit of the API admits it.
func (s *service) askPatiently(t *testing.T, q question) answer {
	t.Helper()
	for deadline := time.Now().Add(meted.Patience); ; {
		a := s.ask(t, q)
		if a.status != http.StatusTooManyRequests || a.header.Get("Content-Type") == "application/json" || time.Now().After(deadline) {
			return a
		}
	}
}

// The server accepts every request that is valid by the document and rejects every invalid one.
func TestRandomRequests(t *testing.T) {
	const rounds, seed = 60, 7
	s := newService(t)
	g := generator{rand.New(testseed.PCG(seed, 0))}
	for round := range rounds {
		for path, schema := range s.asked() {
			for _, right := range []bool{true, false} {
				value := g.value(schema)
				if !right {
					value = g.makeInvalid(value)
				}
				body, err := json.Marshal(value)
				if err != nil {
					t.Fatal(err)
				}
				q := as("configure", question{base: s.admin, method: "POST", target: path, body: string(body)})
				route, _ := s.route(q.request(t), q.base)
				if wrong := s.valid(t, q, route); (wrong == nil) != right {
					t.Errorf("round %d: %s %s: by the document %v, want %v", round, path, body, wrong, right)
				}
				a := s.askPatiently(t, q)
				if right && a.status != 200 && a.status != 429 || !right && a.status != 400 {
					t.Errorf("round %d: %s %s: %d, and by the document it is right: %v\n%.300s", round, path, body, a.status, right, a.body)
				}
			}
		}
	}
}

// The bounds of what a number can be are those of the server.
func TestBounds(t *testing.T) {
	s := newService(t)
	cost := s.doc.Components.Schemas["Request"].Value.Properties["cost"].Value
	if cost.Max == nil || *cost.Max != float64(1<<53-1)/1000 || cost.MultipleOf == nil || *cost.MultipleOf != 0.001 {
		t.Fatalf("a cost is at most %v, and a multiple of %v", cost.Max, cost.MultipleOf)
	}
	for text, status := range map[string]int{"9007199254740.991": 429, "9007199254740.992": 400, "0.001": 200, "0.0005": 400, "0": 400, "-1": 400, "1e2": 429, "1E-3": 200} {
		s.askRow(t, row{where: "main", method: "POST", target: "/v1/take?status=429", body: `{"attributes":{"header:x-api-key":"b` + text + `"},"cost":` + text + `}`, status: status})
	}
	for n, status := range map[int]int{1: 200, 128: 200, 129: 400} {
		s.askRow(t, row{where: "main", method: "POST", target: "/v1/peek", body: fmt.Sprintf(`{"attributes":{},"id":"%0*d"}`, n, 1), status: status})
		s.askRow(t, row{where: "main", method: "POST", target: "/v1/peek", body: fmt.Sprintf(`{"attributes":{"tenant:%0*d":"x"}}`, max(n-len("tenant:"), 1), 1), status: status})
	}
}
