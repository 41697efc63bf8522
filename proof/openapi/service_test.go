// SPDX-License-Identifier: Apache-2.0

package openapi_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"github.com/metehq/mete/proof/meted"
)

func TestMain(m *testing.M) { meted.Main(m) }

// A service is a server, and its description of itself.
type service struct {
	main, admin string // URLs
	doc         *openapi3.T
	seen        map[string]bool // "POST /v1/take 429 application/json": answers that were checked
}

// describe reads the description of a server, which must be the same at both
// addresses, and valid.
func describe(t *testing.T, main, admin string) *service {
	t.Helper()
	s := &service{main: main, admin: admin, seen: map[string]bool{}}
	text := fetch(t, main+"/openapi.json")
	if other := fetch(t, admin+"/openapi.json"); !bytes.Equal(text, other) {
		t.Errorf("the two addresses describe themselves differently")
	}
	var err error
	if s.doc, err = openapi3.NewLoader().LoadFromData(text); err != nil {
		t.Fatal(err)
	}
	if !s.doc.IsOpenAPI31OrLater() {
		t.Errorf("the document is of OpenAPI %s", s.doc.OpenAPI)
	}
	if err := s.doc.Validate(t.Context()); err != nil { // its examples, too
		t.Fatal(err)
	}
	return s
}

func fetch(t *testing.T, url string) []byte {
	t.Helper()
	a, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil || a.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s, %v", url, a.Status, err)
	}
	return text
}

// A question is one request.
type question struct {
	base, method, target, body string
	fields                     []string // name and value in turn
}

// An answer is a response with its whole body.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// ask sends q and validates the answer against the document: status, media type, header fields and all
// members of the body. An unknown operation, or one of the other address, must return 404 or 405. An
// invalid request must be rejected.
func (s *service) ask(t *testing.T, q question) answer {
	t.Helper()
	r := q.request(t)
	route, elsewhere := s.route(r, q.base)
	valid := route == nil || s.valid(t, q, route) == nil
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatalf("%s %s: %v", q.method, q.target, err)
	}
	defer resp.Body.Close()
	body, err := readAnswer(resp)
	if err != nil {
		t.Fatalf("%s %s: %v", q.method, q.target, err)
	}
	a := answer{resp.StatusCode, resp.Header, body}
	switch {
	case route == nil:
		s.checkAbsent(t, q, a)
	case elsewhere && a.status != http.StatusNotFound:
		t.Errorf("%s %s: %d, and the document says that it is at the other address alone", q.method, q.target, a.status)
	case elsewhere && route.Operation.Responses.Status(a.status) == nil: // the document does not cover the other address
		s.checkAbsent(t, q, a)
	case !valid && a.status < 400:
		t.Errorf("%s %s %.300s: %d, and the document says that it is wrong: %v", q.method, q.target, q.body, a.status, s.valid(t, q, route))
	default:
		s.check(t, q, a, route)
	}
	return a
}

// readAnswer reads an answer to its end, and of a stream two events.
func readAnswer(resp *http.Response) (body []byte, err error) {
	if resp.Header.Get("Content-Type") != streamMedia || resp.Request.Method == http.MethodHead {
		return io.ReadAll(resp.Body)
	}
	for from := bufio.NewReader(resp.Body); err == nil && bytes.Count(body, []byte("\n\n")) < 2; {
		var line []byte
		line, err = from.ReadBytes('\n')
		body = append(body, line...)
	}
	return body, err
}

// streamMedia is the type of an answer that goes on.
const streamMedia = "text/event-stream"

func init() {
	for _, media := range []string{streamMedia, "text/csv"} {
		openapi3filter.RegisterBodyDecoder(media, openapi3filter.FileBodyDecoder)
	}
}

// checkEvents holds the events of a stream against the schemas that the document has for
// their names.
func (s *service) checkEvents(t *testing.T, body []byte, media *openapi3.MediaType) {
	t.Helper()
	text, err := json.Marshal(media.Extensions["x-events"])
	var schemas map[string]*openapi3.SchemaRef
	if err == nil {
		err = json.Unmarshal(text, &schemas)
	}
	if err != nil {
		t.Fatal(err)
	}
	for event := range strings.SplitSeq(strings.TrimSuffix(string(body), "\n\n"), "\n\n") {
		var name string
		var value any
		for line := range strings.SplitSeq(event, "\n") {
			switch field, rest, _ := strings.Cut(line, ": "); field {
			case "event":
				name = rest
			case "data":
				err = json.Unmarshal([]byte(rest), &value)
			}
		}
		schema := schemas[name]
		if schema == nil || err != nil {
			t.Errorf("the document has no event %q: %s, %v", name, event, err)
			continue
		}
		of := s.doc.Components.Schemas[strings.TrimPrefix(schema.Ref, "#/components/schemas/")]
		if err := s.doc.ValidateSchemaJSON(of.Value, value, openapi3.EnableJSONSchema2020()); err != nil {
			t.Errorf("the event %s: %v", event, err)
		}
	}
}

func (q question) request(t *testing.T) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), q.method, q.base+q.target, strings.NewReader(q.body))
	if err != nil {
		t.Fatal(err)
	}
	for field := range slices.Chunk(q.fields, 2) {
		if field[0] == "Host" {
			r.Host = field[1]
			continue
		}
		r.Header.Add(field[0], field[1])
	}
	if q.body != "" && r.Header.Get("Content-Type") == "" {
		r.Header.Set("Content-Type", "application/json")
	}
	return r
}

// route returns the document's route for r, or nil. elsewhere reports that only the other address serves
// it.
func (s *service) route(r *http.Request, base string) (route *routers.Route, elsewhere bool) {
	path := r.URL.Path
	if dir, id, ok := strings.Cut(path, "/v1/overrides/"); ok && dir == "" && id != "" {
		path = "/v1/overrides/{id}"
	}
	item := s.doc.Paths.Value(path)
	if item == nil {
		return nil, false
	}
	method := r.Method
	if method == http.MethodHead || item.Get != nil && item.Get.Extensions["x-methods"] == "any" {
		method = http.MethodGet
	}
	o := item.GetOperation(method)
	if o == nil {
		return nil, false
	}
	return &routers.Route{Spec: s.doc, Path: path, PathItem: item, Method: method, Operation: o}, len(item.Servers) > 0 && base == s.main
}

func (s *service) input(t *testing.T, q question, route *routers.Route) *openapi3filter.RequestValidationInput {
	t.Helper()
	r := q.request(t)
	path := map[string]string{}
	if id, ok := strings.CutPrefix(r.URL.Path, "/v1/overrides/"); ok {
		path["id"] = id
	}
	return &openapi3filter.RequestValidationInput{Request: r, PathParams: path, Route: route,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, SkipSettingDefaults: true}}
}

// valid returns an error if q is invalid by the document.
func (s *service) valid(t *testing.T, q question, route *routers.Route) error {
	t.Helper()
	return openapi3filter.ValidateRequest(context.Background(), s.input(t, q, route))
}

// limitFields are the header fields that nothing may have but what lists them.
var limitFields = []string{"Retry-After", "Www-Authenticate", "Ratelimit", "Ratelimit-Policy", "Ratelimit-Limit", "Ratelimit-Remaining", "Ratelimit-Reset",
	"X-Ratelimit-Limit", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", "X-Ratelimit-Reason", "X-Ratelimit-Status", "X-Ratelimit-Warning"}

// check holds a against the document.
func (s *service) check(t *testing.T, q question, a answer, route *routers.Route) {
	t.Helper()
	in := &openapi3filter.ResponseValidationInput{RequestValidationInput: s.input(t, q, route), Status: a.status, Header: a.header,
		Options: &openapi3filter.Options{IncludeResponseStatus: true}}
	in.SetBodyBytes(a.body)
	if err := openapi3filter.ValidateResponse(context.Background(), in); err != nil {
		t.Errorf("%s %s %.300s: answered with %d %v\n%.1000s\n%v", q.method, q.target, q.body, a.status, a.header, a.body, err)
		return
	}
	said := route.Operation.Responses.Status(a.status).Value
	listed := map[string]bool{}
	for name := range said.Headers {
		listed[http.CanonicalHeaderKey(name)] = true
	}
	for _, name := range limitFields {
		if a.header[name] != nil && !listed[name] {
			t.Errorf("%s %s: %d has %s, which the document does not list", q.method, q.target, a.status, name)
		}
	}
	if len(said.Content) == 0 && len(a.body) > 0 {
		t.Errorf("%s %s: %d has a body, which the document does not know: %.300s", q.method, q.target, a.status, a.body)
	}
	media, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
	if media == streamMedia && len(a.body) > 0 {
		s.checkEvents(t, a.body, said.Content[media])
	}
	s.seen[fmt.Sprintf("%s %s %d %s", route.Method, route.Path, a.status, media)] = true
}

// checkAbsent checks the answer of an unknown operation against the description of problems.
func (s *service) checkAbsent(t *testing.T, q question, a answer) {
	t.Helper()
	switch a.status {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusUnauthorized, http.StatusMisdirectedRequest:
	default:
		t.Errorf("%s %s: %d, and the document has no such operation there\n%.300s", q.method, q.target, a.status, a.body)
		return
	}
	if a.status == http.StatusMethodNotAllowed && a.header.Get("Allow") == "" {
		t.Errorf("%s %s: 405 without Allow", q.method, q.target)
	}
	if q.method == http.MethodHead {
		return
	}
	if err := s.problem(a); err != nil {
		t.Errorf("%s %s: %d %s %.300s: %v", q.method, q.target, a.status, a.header.Get("Content-Type"), a.body, err)
	}
}
