// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/metehq/mete/internal/curl"
	"github.com/metehq/mete/policy"
)

// A requestText is what POST data/request takes.
type requestText struct {
	Text string `json:"text"` // a curl command, the text of a request, or attributes
}

// A readRequest is what that answers: a request as POST /v1/explain takes it.
type readRequest struct {
	Attributes map[string]string `json:"attributes"`
	Cost       *json.Number      `json:"cost,omitempty"`

	Secrets []string `json:"secrets"` // attributes whose values may be credentials
	Unread  []string `json:"unread"`  // attributes that were left out: no rule looks at them
	Notes   []string `json:"notes"`   // what else is to be known
}

// serveRequest reads what a viewer has of a request.
func (h *Handler) serveRequest(w http.ResponseWriter, r *http.Request, _ Viewer) error {
	var in requestText
	if err := readJSON(w, r, &in); err != nil {
		return err
	}
	request, err := curl.Read(in.Text)
	if err != nil {
		p := refuse(http.StatusBadRequest, "%s", strings.TrimPrefix(err.Error(), "curl: "))
		p.Field = "text"
		return p
	}
	return answerJSON(w, readFor(h.config.Limiter.Policy(), &request))
}

// readFor is what m can look at of a request. The method, the path and the host stay
// whatever it looks at: they are what people know a request by.
func readFor(m *policy.Matcher, request *curl.Request) readRequest {
	out := readRequest{Attributes: map[string]string{}, Secrets: []string{}, Unread: []string{}, Notes: append([]string{}, request.Notes...)}
	looked := map[string]bool{"method": true, "path": true, "host": true}
	uses := map[policy.Source]bool{}
	if m != nil {
		for _, a := range m.Attributes() {
			looked[a.String()], uses[a.Source] = true, true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(request.Attributes)) {
		if !looked[name] {
			if name != "header:host" && !strings.HasPrefix(name, "jwt:") { // which the text does not have as they stand
				out.Unread = append(out.Unread, name)
			}
			continue
		}
		out.Attributes[name] = request.Attributes[name]
		if a, err := policy.ParseAttribute(name); err == nil && a.Secret() {
			out.Secrets = append(out.Secrets, name)
		}
	}
	if request.Cost > 0 {
		cost := amount(request.Cost)
		out.Cost = &cost
	}
	out.note(request, uses, looked)
	return out
}

// note notes what of the request is not in its text.
func (out *readRequest) note(request *curl.Request, uses map[policy.Source]bool, looked map[string]bool) {
	for _, name := range request.Assumed {
		if looked[name] {
			out.Notes = append(out.Notes, fmt.Sprintf("the command does not say %s: curl sends %q or the like by itself", name, request.Attributes[name]))
		}
	}
	if uses[policy.SourceJWT] && len(request.Claims) > 0 {
		out.Notes = append(out.Notes, curl.ClaimsNote)
	}
	if _, there := request.Attributes["ip:address"]; uses[policy.SourceIP] && !there {
		out.Notes = append(out.Notes, "rules look at the client's address, which is not in a request's text: say ip:address")
	}
}
