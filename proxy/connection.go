// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"net/http"
	"slices"
	"strings"
)

// keptFields are fields that stay although Connection names them: how a connection is
// upgraded, which [httputil.ReverseProxy] sees to, and what trusted proxies write, which
// is never sent on as it comes. No client may have its address forgotten.
var keptFields = []string{
	"Connection", "Upgrade", "Te", "Trailer", "Transfer-Encoding", "Keep-Alive",
	"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip", "Cf-Connecting-Ip", "True-Client-Ip",
}

// withoutConnectionFields returns r without the fields that its Connection names,
// which are for the next hop only (RFC 9110, 7.6.1). They would not be sent on, and
// rules must not be asked about what the upstream does not see. It is r where there
// are none.
func withoutConnectionFields(r *http.Request) *http.Request {
	clean := r
	for _, line := range r.Header["Connection"] {
		for option := range strings.SplitSeq(line, ",") {
			name := http.CanonicalHeaderKey(strings.Trim(option, " \t"))
			if _, there := r.Header[name]; !there || slices.Contains(keptFields, name) {
				continue
			}
			if clean == r {
				clean = r.WithContext(r.Context()) // a shallow copy
				clean.Header = r.Header.Clone()
			}
			delete(clean.Header, name)
		}
	}
	return clean
}
