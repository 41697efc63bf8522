// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"strings"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/httpfacts"
	"github.com/metehq/mete/internal/requestpath"
	"github.com/metehq/mete/policy"
)

// A Request is one line of a trace: a time and attributes.
type Request struct {
	At   bucket.Instant
	Cost bucket.Tokens // 0 if the line has no cost

	method, path, host, ip string // empty if the line has none
	rawHost                string // with port, for header:host
	rawQuery               string // not decoded; fields below take precedence
	query, headers, claims pairs

	// The state of a log line: its raw text, and the fields above that are already parsed.
	logged                                       bool
	targetRead, addressRead                      bool
	logAddress, logRequest, logReferer, logAgent string
}

func (r *Request) reset() {
	*r = Request{query: r.query[:0], headers: r.headers[:0], claims: r.claims[:0]}
}

// Lookup implements [policy.Attributes]. It returns the same values as the gateway and the API for the same
// request.
func (r *Request) Lookup(a policy.Attribute) (value string, ok bool) {
	if r.logged {
		switch a.Source {
		case policy.SourceHeader:
			if a.Name != "host" {
				return r.logHeader(a.Name)
			}
			r.readTarget()
		case policy.SourceIP:
			r.readAddress()
		case policy.SourceCookie, policy.SourceJWT: // which logs do not have
		default:
			r.readTarget()
		}
	}
	switch a.Source {
	case policy.SourceHeader:
		if a.Name == "host" && r.rawHost != "" {
			return r.rawHost, true
		}
		return r.headers.get(a.Name)
	case policy.SourceQuery:
		if value, ok = r.query.get(a.Name); ok || r.rawQuery == "" {
			return value, ok
		}
		return httpfacts.QueryValue(r.rawQuery, a.Name)
	case policy.SourceCookie:
		header, _ := r.headers.get("cookie")
		return httpfacts.CookieValue(header, a.Name)
	case policy.SourceJWT:
		return r.claims.get(a.Name)
	case policy.SourceIP:
		return r.ip, r.ip != ""
	case policy.SourceMethod:
		return requestpath.Method(r.method), r.method != ""
	case policy.SourcePath:
		return r.path, r.path != ""
	case policy.SourceHost:
		return r.host, r.host != ""
	}
	return "", false
}

func (r *Request) logHeader(name string) (string, bool) {
	value := "-"
	switch name {
	case "referer":
		value = r.logReferer
	case "user-agent":
		value = r.logAgent
	}
	if value == "-" {
		return "", false
	}
	return unescape(value), true
}

func (r *Request) setTarget(target string) {
	if target == "" {
		return
	}
	r.path, r.rawQuery, _ = strings.Cut(target, "?")
	r.path = httpfacts.Path(r.path)
}

// setHost sets the host in lower case without port.
func (r *Request) setHost(s string) {
	r.rawHost = s
	r.host, _ = httpfacts.Host(s)
}

// pairs is a list of names and values. It is faster than a map for few pairs.
type pairs []pair

type pair struct{ name, value string }

func (p pairs) get(name string) (string, bool) {
	for i := range p {
		if p[i].name == name {
			return p[i].value, true
		}
	}
	return "", false
}
