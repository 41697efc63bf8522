// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/internal/requesttext"
	"github.com/metehq/mete/policy"
)

// maxTextBytes bounds the bodies of POST /v1/request and POST /v1/play, into which people paste long texts.
const maxTextBytes = 1 << 20

// serveRequest serves /v1/request: it converts the text of a request to attributes for /v1/explain.
func (a *API) serveRequest(w http.ResponseWriter, r *http.Request) *api.Problem {
	var in api.RequestText
	if p := a.readText(w, r, &in); p != nil {
		return p
	}
	request, err := a.parseRequest(in.Text)
	if err != nil {
		return memberProblem("/text", strings.TrimPrefix(err.Error(), "requesttext: "))
	}
	return serveJSON(w, parsedRequest(a.lim.Policy(), &request))
}

func (a *API) parseRequest(text string) (requesttext.Request, error) {
	if !requesttext.IsCurl(text) {
		return requesttext.Read(text)
	}
	if a.live.ReadCurl == nil {
		return requesttext.Request{}, errors.New("curl commands are not supported here; paste the text of the HTTP request")
	}
	sent, err := a.live.ReadCurl(text)
	if err != nil {
		return requesttext.Request{}, err
	}
	request := requesttext.Request{Notes: sent.Notes}
	return request, request.AddHTTP(sent.Request, sent.Assumed...)
}

// readText decodes a body of at most maxTextBytes into v and rejects members that v does not have.
func (a *API) readText(w http.ResponseWriter, r *http.Request, v any) *api.Problem {
	if p := a.checkSender(w, r); p != nil {
		return p
	}
	if _, p := parseQuery(r); p != nil {
		return p
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxTextBytes))
	if _, long := errors.AsType[*http.MaxBytesError](err); long {
		return api.NewProblem(http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is longer than %d bytes; send less", maxTextBytes))
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err == nil {
		err = d.Decode(v)
	}
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			return api.NewProblem(http.StatusBadRequest, "unexpected text after the JSON object; send one object")
		}
		err = checkMembers(body, reflect.TypeOf(v))
	}
	if err == nil {
		return nil
	}
	return api.NewProblem(http.StatusBadRequest, fmt.Sprintf("the body cannot be parsed: %v", err))
}

// parsedRequest returns the attributes of a request that m reads. It always includes method, path and host,
// because people recognize a request by them.
func parsedRequest(m *policy.Matcher, request *requesttext.Request) api.ParsedRequest {
	out := api.ParsedRequest{Attributes: map[string]string{}, Secrets: []string{}, Unread: []string{}, Notes: append([]string{}, request.Notes...)}
	looked := map[string]bool{"method": true, "path": true, "host": true}
	uses := map[policy.Source]bool{}
	if m != nil {
		for _, a := range m.Attributes() {
			looked[a.String()], uses[a.Source] = true, true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(request.Attributes)) {
		if !looked[name] {
			if name != "header:host" && !strings.HasPrefix(name, "jwt:") { // not literally in the text
				out.Unread = append(out.Unread, name)
			}
			continue
		}
		out.Attributes[name] = request.Attributes[name]
		if a, err := policy.ParseAttribute(name); err == nil && a.IsSecret() {
			out.Secrets = append(out.Secrets, name)
		}
	}
	out.Cost = api.Amount(request.Cost)
	out.Notes = append(out.Notes, notesOf(request, uses, looked)...)
	return out
}

func notesOf(request *requesttext.Request, uses map[policy.Source]bool, looked map[string]bool) (notes []string) {
	for _, name := range request.Assumed {
		if looked[name] {
			notes = append(notes, fmt.Sprintf("the command does not set %s: curl sends its own, such as %q", name, request.Attributes[name]))
		}
	}
	if uses[policy.SourceJWT] && len(request.Claims) > 0 {
		notes = append(notes, requesttext.ClaimsNote)
	}
	if _, there := request.Attributes["ip:address"]; uses[policy.SourceIP] && !there {
		notes = append(notes, "rules read the client's address, which the text of a request does not contain: set ip:address")
	}
	return notes
}
