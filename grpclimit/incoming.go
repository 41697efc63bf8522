// SPDX-License-Identifier: Apache-2.0

package grpclimit

import (
	"context"
	"net/http"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/httpfacts"
	"github.com/metehq/mete/policy"
)

const authorityKey = ":authority"

// incoming reads the attributes of a call to a server. It is not safe for concurrent use.
type incoming struct {
	ctx    context.Context
	method string
	server *Interceptor

	asked    policy.Attribute // attribute that is being read
	policy   *policy.Matcher  // deciding policy; nil if there is none yet
	now      bucket.Instant   // decision time
	disputed string           // duplicate metadata or cookie that an enforced rule reads
}

// SetPolicy sets the policy and the time of the decision. Rules in shadow mode do not reject duplicates. Method
// limits are read earlier, and are always enforced.
func (in *incoming) SetPolicy(m *policy.Matcher, now bucket.Instant) { in.policy, in.now = m, now }

func (in *incoming) dispute(what string) {
	if in.policy == nil || in.policy.Enforces(in.asked, in.now) {
		in.disputed = what
	}
}

func (in *incoming) Lookup(a policy.Attribute) (value string, ok bool) {
	in.asked = a
	switch a.Source {
	case policy.SourceMethod:
		return http.MethodPost, true // always POST on the wire
	case policy.SourcePath:
		return in.method, true
	case policy.SourceHost:
		authority, _ := in.metadata(authorityKey)
		return httpfacts.Host(authority)
	case policy.SourceHeader:
		if a.Name == "host" {
			return in.metadata(authorityKey)
		}
		return in.metadata(a.Name)
	case policy.SourceCookie:
		value, ok, disputed := httpfacts.Cookie(metadata.ValueFromIncomingContext(in.ctx, "cookie"), a.Name)
		if disputed {
			in.dispute("cookie " + a.Name)
		}
		return value, ok
	case policy.SourceIP:
		return in.address()
	case policy.SourceQuery:
		return "", false
	case policy.SourceJWT:
		// The program could read a different value than the limiter.
		if len(metadata.ValueFromIncomingContext(in.ctx, "authorization")) > 1 {
			in.dispute("authorization")
		}
	}
	if supply := in.server.config.Attribute; supply != nil {
		return supply(in.ctx, a)
	}
	return "", false
}

func (in *incoming) metadata(key string) (string, bool) {
	values := metadata.ValueFromIncomingContext(in.ctx, key)
	switch {
	case len(values) == 0:
		return "", false
	case len(values) > 1:
		value, disputed := httpfacts.JoinLines(key, values)
		if disputed {
			in.dispute(key)
		}
		return value, true
	case key == "authorization":
		return httpfacts.Credentials(values[0]), true
	}
	return values[0], true
}

// address returns the client's address. It uses the same trust rules as the HTTP adapters.
func (in *incoming) address() (string, bool) {
	p, ok := peer.FromContext(in.ctx)
	if !ok || p.Addr == nil {
		return "", false
	}
	r := &http.Request{RemoteAddr: p.Addr.String()}
	if in.server.trusts {
		name := in.server.config.forwardedHeader()
		r.Header = http.Header{name: metadata.ValueFromIncomingContext(in.ctx, name)}
	}
	facts := in.server.source.Facts(r)
	defer facts.Release()
	return facts.Address()
}

func cookie(lines []string, name string) (string, bool) {
	for _, line := range lines {
		if value, ok := httpfacts.CookieValue(line, name); ok {
			return value, true
		}
	}
	return "", false
}
