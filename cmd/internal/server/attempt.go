// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/config"
	"github.com/metehq/mete/cmd/internal/display"
	"github.com/metehq/mete/policy"
)

// maxAttemptRequests bounds the requests of the second command for a gateway.
const maxAttemptRequests = 2000

// An attempt is an example request that the policy limits, with the capacity of its limit.
type attempt struct {
	attributes policy.Map
	capacity   int64
}

// Commands returns two shell commands that demonstrate the limiter: the first sends one request. The second sends
// more than the policy allows, so that its last responses have status 429.
func (s *Server) Commands(c config.Config) []string {
	to := baseURL(c.TLS, s.main)
	if c.IsGateway() {
		return newAttempt(s.Policy(), isSendable).gatewayCommands(to)
	}
	return newAttempt(s.Policy(), func(policy.Attribute) bool { return true }).apiCommands(to + "/v1/take")
}

// isSendable reports whether a client can set the attribute in a request to a gateway. Clients cannot choose their
// address.
func isSendable(a policy.Attribute) bool {
	switch a.Source {
	case policy.SourceJWT, policy.SourceCustom, policy.SourceHost:
		return false
	}
	return true
}

// newAttempt returns a request for the first enforced rule that only reads possible attributes. If there is no
// such rule, it returns a guess.
func newAttempt(m *policy.Matcher, possible func(policy.Attribute) bool) attempt {
	for i, r := range m.Rules() {
		if r.Mode != policy.ModeEnforce {
			continue
		}
		request, ok := m.Sample(i)
		for name := range request {
			a, err := policy.ParseAttribute(name)
			ok = ok && err == nil && possible(a)
		}
		if !ok {
			continue
		}
		smallest := r.Limits[0].Bucket.Capacity()
		for _, l := range r.Limits[1:] {
			smallest = min(smallest, l.Bucket.Capacity())
		}
		return attempt{request, int64(max(smallest, bucket.Token) / bucket.Token)}
	}
	return attempt{policy.Map{"ip:address": "192.0.2.1", "method": "GET", "path": "/"}, 20}
}

// apiCommands returns one request, then three requests that each take most of the capacity. The bucket refills too
// slowly between the commands to admit all three.
func (a attempt) apiCommands(to string) []string {
	body := func(cost string) string {
		attributes, _ := json.Marshal(a.attributes) // strings always marshal
		return display.Quote(`{"attributes":` + string(attributes) + cost + `}`)
	}
	most := a.capacity - a.capacity/4
	return []string{
		"curl -i --json " + body("") + " " + to,
		fmt.Sprintf(`for i in 1 2 3; do curl -si --json %s '%s?status=429' | grep -E '^(HTTP|Retry)'; done`,
			body(fmt.Sprintf(`,"cost":%d`, most)), to),
	}
}

// gatewayCommands returns one request, then a loop of 1.25 times the capacity over one connection that counts the
// statuses.
func (a attempt) gatewayCommands(to string) []string {
	var options string
	at := url.URL{Path: "/"}
	query := url.Values{}
	for _, name := range slices.Sorted(maps.Keys(a.attributes)) {
		attribute, _ := policy.ParseAttribute(name) // newAttempt has parsed it before
		value := a.attributes[name]
		switch attribute.Source {
		case policy.SourceMethod:
			if value != http.MethodGet {
				options += "-X " + display.Quote(value) + " "
			}
		case policy.SourcePath:
			at.Path = value
		case policy.SourceHeader:
			options += "-H " + display.Quote(attribute.Name+": "+value) + " "
		case policy.SourceCookie:
			options += "-b " + display.Quote(attribute.Name+"="+value) + " "
		case policy.SourceQuery:
			query.Set(attribute.Name, value)
		}
	}
	at.RawQuery = query.Encode()
	mark := "?"
	if at.RawQuery != "" {
		mark = "&"
	}
	to += at.String()
	most := min(a.capacity+max(a.capacity/4, 5), maxAttemptRequests)
	return []string{
		fmt.Sprintf("curl -i %s'%s'", options, to),
		fmt.Sprintf(`curl -s -o /dev/null -w '%%{http_code}\n' %s'%s%sn=[1-%d]' | sort | uniq -c`, options, to, mark, most),
	}
}
