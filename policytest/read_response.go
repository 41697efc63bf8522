// SPDX-License-Identifier: Apache-2.0

package policytest

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/metehq/mete/internal/parse"
	"github.com/metehq/mete/policy"
)

// readResponse reads the response to the requests of a step.
func (r *reader) readResponse(s *Step, o *parse.Object) {
	s.Response = policy.Response{Bytes: -1, Ended: true}
	if f := o.Field("status"); f != nil {
		n, err := strconv.Atoi(f.Text)
		if f.Kind != parse.KindNumber || err != nil || n > 599 || n < http.StatusOK && n != http.StatusSwitchingProtocols {
			r.Add(f, "status must be a whole number from 200 to 599, or 101", "")
		} else {
			s.Response.Status = n
		}
	}
	if f := o.Field("grpc"); f != nil {
		names := policy.GRPCCodes()
		if i := r.Choice(f, "grpc", names, nil); i >= 0 {
			s.Response.GRPC = names[i]
		}
	}
	if f := o.Field("bytes"); f != nil {
		n, err := strconv.ParseInt(f.Text, 10, 64)
		if f.Kind != parse.KindNumber || err != nil || n < 0 {
			r.Add(f, "bytes must be a whole number, not below 0", "")
		} else {
			s.Response.Bytes = n
		}
	}
	if f := o.Field("response_headers"); f != nil {
		s.Response.Header = r.readResponseHeaders(f)
	}
	if f := o.Field("usage"); f != nil {
		if s.Response.Usage = r.readUsage(f); o.Count("status", "grpc") == 0 {
			s.Response.Status = http.StatusOK
		}
		return
	}
	if o.Count("bytes", "response_headers") > 0 && o.Count("status", "grpc") == 0 {
		r.AddAt(o.Node, "a response needs an outcome", "set status or grpc")
	}
}

// warnUnreadResponse warns about a response that no limit of the step's requests depends on.
func (r *reader) warnUnreadResponse(s *Step, o *parse.Object) {
	if r.matcher == nil || s.Response.Status == 0 && s.Response.GRPC == "" {
		return
	}
	for _, n := range []int{0, max(s.Times-1, 0)} {
		matches, _ := r.matcher.Match(nil, s.Attributes(n), 0, s.Instant(n))
		if slices.ContainsFunc(matches, func(m policy.Match) bool { return m.Limit.AwaitsResponse() }) {
			return
		}
	}
	var at *parse.Node
	for _, name := range []string{"status", "grpc", "usage"} {
		if at == nil {
			at = o.Field(name)
		}
	}
	r.warn(at, "unread-response", "no limit of these requests is charged by responses", "check the match and charge_on of the rules, or remove the response")
}

// readUsage reads the tokens of a language model.
func (r *reader) readUsage(n *parse.Node) *policy.TokenUsage {
	o := r.Object(n, r.in.Usage)
	if o == nil {
		return nil
	}
	u := &policy.TokenUsage{}
	for _, class := range []struct {
		name string
		to   *int64
	}{{"input", &u.Input}, {"cached", &u.Cached}, {"cache_write", &u.CacheWrite}, {"output", &u.Output}, {"reasoning", &u.Reasoning}} {
		if f := o.Field(class.name); f != nil {
			v, _ := r.Whole(f, class.name, 0, maxTestTokens)
			*class.to = int64(v)
		}
	}
	return u
}

func (r *reader) readResponseHeaders(n *parse.Node) func(string) (string, bool) {
	if n.Kind != parse.KindObject {
		r.Add(n, "response_headers must be an object", `as in {"x-cost": "5"}`)
		return nil
	}
	values := map[string]string{}
	for _, f := range n.Fields {
		if f.Value.Kind != parse.KindText && f.Value.Kind != parse.KindNumber {
			r.Add(f.Value, "the value of a header field must be one string", "")
			continue
		}
		values[strings.ToLower(f.Name)] = f.Value.Text
	}
	return func(name string) (string, bool) {
		value, ok := values[name]
		return value, ok
	}
}
