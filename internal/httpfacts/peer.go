// SPDX-License-Identifier: Apache-2.0

package httpfacts

import "net/http"

// IsZero reports whether t trusts nobody.
func (t Trust) IsZero() bool { return t.Hops == 0 && len(t.Proxies) == 0 }

// Peer reports whether whoever opened r's connection is a trusted proxy.
func (t Trust) Peer(r *http.Request) bool {
	if t.Hops > 0 {
		return true
	}
	addr, _ := parseNode(r.RemoteAddr)
	return t.contains(addr)
}

// Path returns the path as attributes have it: see the package's description.
func Path(p string) string { return cleanPath(p) }
