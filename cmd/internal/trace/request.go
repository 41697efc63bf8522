// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/httpfacts"
	"github.com/metehq/mete/internal/requestpath"
	"github.com/metehq/mete/policy"
)

// A Request is one line of a trace: a time and attributes.
type Request struct {
	At   bucket.Instant
	Cost bucket.Tokens // 0 if the line has no cost

	Duration time.Duration // until the end of the response; 0 if the line has none

	method, path, host, ip string // empty if the line has none
	rawHost                string // with port, for header:host
	rawQuery               string // not decoded; fields below take precedence
	query, headers, claims pairs

	status  int   // of the response; 0 if it is unknown
	bytes   int64 // of its body; negative if unknown
	answers pairs // fields of the response
	model   pairs // attributes of a request to a language model
	usage   policy.TokenUsage
	used    bool // the line has a usage

	// The state of a log line: its raw text, and the fields above that are already parsed.
	logged                                       bool
	targetRead, addressRead                      bool
	logAddress, logRequest, logReferer, logAgent string
}

func (r *Request) reset() {
	*r = Request{query: r.query[:0], headers: r.headers[:0], claims: r.claims[:0], answers: r.answers[:0], model: r.model[:0], bytes: -1}
}

// Response returns the recorded response, for limits that are charged by it. It has no outcome if the line has no status,
// or the one of a client that disconnected. A usage without a status is of a response with 200. It stays valid if the line
// has a duration.
func (r *Request) Response() policy.Response {
	answers := r.answers
	if r.Duration > 0 {
		answers = slices.Clone(answers)
		for i, p := range answers {
			answers[i] = pair{strings.Clone(p.name), strings.Clone(p.value)}
		}
	}
	res := policy.Response{Status: r.status, Header: answers.get, Bytes: r.bytes, Ended: true}
	if r.status == policy.StatusClientClosed {
		res.Status = 0
	}
	if r.used {
		usage := r.usage
		model, _ := r.model.get("model")
		res.Usage, res.Model, res.Status = &usage, strings.Clone(model), cmp.Or(r.status, http.StatusOK)
	}
	return res
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
		case policy.SourceCookie, policy.SourceJWT, policy.SourceAI: // which logs do not have
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
	case policy.SourceAI:
		return r.model.get(a.Name)
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
