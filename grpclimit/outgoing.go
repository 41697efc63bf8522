// SPDX-License-Identifier: Apache-2.0

package grpclimit

import (
	"context"
	"net/http"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/metehq/mete/internal/httpfacts"
	"github.com/metehq/mete/policy"
)

// outgoing reads the attributes of a call that a client is about to make.
type outgoing struct {
	ctx    context.Context
	method string
	target string // target of the connection
	supply func(context.Context, policy.Attribute) (string, bool)
}

// Lookup implements [policy.Attributes]. It has no ip:address, because the caller is the program itself.
func (out *outgoing) Lookup(a policy.Attribute) (value string, ok bool) {
	switch a.Source {
	case policy.SourceMethod:
		return http.MethodPost, true // always POST on the wire
	case policy.SourcePath:
		return out.method, true
	case policy.SourceHost:
		return httpfacts.Host(out.target[strings.LastIndexByte(out.target, '/')+1:])
	case policy.SourceHeader, policy.SourceCookie:
		md, _ := metadata.FromOutgoingContext(out.ctx)
		if a.Source == policy.SourceCookie {
			return cookie(md["cookie"], a.Name)
		}
		if values := md[a.Name]; len(values) > 0 {
			return values[0], true
		}
		return "", false
	case policy.SourceIP, policy.SourceQuery:
		return "", false
	}
	if out.supply != nil {
		return out.supply(out.ctx, a)
	}
	return "", false
}

// target returns the target of a connection, or "" for nil, as in direct calls of an interceptor.
func target(cc *grpc.ClientConn) string {
	if cc == nil {
		return ""
	}
	return cc.CanonicalTarget()
}
