// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"net/url"
	"strings"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/httpfacts"
	"github.com/metehq/mete/policy"
)

// A Request is one line of a trace: when it came, and its attributes.
type Request struct {
	At   bucket.Instant
	Cost bucket.Tokens // 0 where the line names none

	method, path, host, ip string // empty where the line has none
	rawHost                string // with its port, for header:host
	rawQuery               string // undecoded; the fields below win
	query, headers, claims pairs
}

func (r *Request) reset() {
	*r = Request{query: r.query[:0], headers: r.headers[:0], claims: r.claims[:0]}
}

// Lookup implements [policy.Attributes]. It answers as the front doors do for
// the same request.
func (r *Request) Lookup(a policy.Attribute) (value string, ok bool) {
	switch a.Source {
	case policy.Header:
		if a.Name == "host" && r.rawHost != "" {
			return r.rawHost, true
		}
		return r.headers.get(a.Name)
	case policy.Query:
		if value, ok = r.query.get(a.Name); ok || r.rawQuery == "" {
			return value, ok
		}
		return queryValue(r.rawQuery, a.Name)
	case policy.Cookie:
		header, _ := r.headers.get("cookie")
		return cookieValue(header, a.Name)
	case policy.JWT:
		return r.claims.get(a.Name)
	case policy.IP:
		return r.ip, r.ip != ""
	case policy.Method:
		return r.method, r.method != ""
	case policy.Path:
		return r.path, r.path != ""
	case policy.Host:
		return r.host, r.host != ""
	}
	return "", false
}

// setTarget sets path and query from a request target in origin form.
func (r *Request) setTarget(target string) {
	if target == "" {
		return
	}
	r.path, r.rawQuery, _ = strings.Cut(target, "?")
	r.path = httpfacts.Path(r.path)
}

// setHost sets the host: its name in lower case, without port.
func (r *Request) setHost(s string) {
	r.rawHost = s
	if strings.HasPrefix(s, "[") {
		s, _, _ = strings.Cut(s[1:], "]")
	} else {
		s, _, _ = strings.Cut(s, ":")
	}
	r.host = strings.ToLower(strings.TrimSuffix(s, "."))
}

// pairs are names with their values. There are few; a map would cost more.
type pairs []pair

type pair struct{ name, value string }

// get returns the value of the first pair of that name.
func (p pairs) get(name string) (string, bool) {
	for i := range p {
		if p[i].name == name {
			return p[i].value, true
		}
	}
	return "", false
}

// queryValue returns the first value of a parameter, as url.ParseQuery reads
// it: what cannot be decoded is passed over.
func queryValue(raw, name string) (string, bool) {
	for raw != "" {
		var field string
		field, raw, _ = strings.Cut(raw, "&")
		key, value, _ := strings.Cut(field, "=")
		if field == "" || strings.Contains(field, ";") {
			continue
		}
		key, err := url.QueryUnescape(key)
		if err != nil || key != name {
			continue
		}
		if value, err = url.QueryUnescape(value); err == nil {
			return value, true
		}
	}
	return "", false
}

// cookieValue returns the value of a cookie in a Cookie header.
func cookieValue(header, name string) (string, bool) {
	for header != "" {
		var field string
		field, header, _ = strings.Cut(header, ";")
		key, value, ok := strings.Cut(strings.TrimSpace(field), "=")
		if ok && key == name {
			if len(value) > 1 && value[0] == '"' && value[len(value)-1] == '"' {
				value = value[1 : len(value)-1]
			}
			return value, true
		}
	}
	return "", false
}
