// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"net/netip"
	"strings"

	"github.com/metehq/mete/internal/httpfacts"
)

// readTarget parses the request line of a log line once.
func (r *Request) readTarget() {
	if r.targetRead {
		return
	}
	r.targetRead = true
	r.method, r.path, r.rawQuery = "", "", ""
	r.host, r.rawHost = "", ""
	r.setRequestLine(unescape(r.logRequest))
}

// readAddress parses the address of a log line once.
func (r *Request) readAddress() {
	if r.addressRead {
		return
	}
	r.addressRead = true
	r.ip = r.logAddress
	if _, err := netip.ParseAddr(r.ip); err != nil {
		r.ip = ""
	}
}

// setRequestLine parses `GET /path?query HTTP/1.1`. It ignores invalid request lines.
func (r *Request) setRequestLine(s string) {
	method, target, ok := strings.Cut(s, " ")
	if !ok || !isToken(method) {
		return
	}
	if i := strings.LastIndexByte(target, ' '); i >= 0 {
		if !strings.HasPrefix(target[i+1:], "HTTP/") {
			return
		}
		target = target[:i]
	}
	if target != "" && target[0] != '/' {
		target = r.setAbsolute(target)
	}
	if target == "" || target[0] != '/' && target != "*" {
		r.host, r.rawHost = "", ""
		return
	}
	r.method = method
	path, query, _ := strings.Cut(target, "?")
	r.path, r.rawQuery = httpfacts.Path(path), query
}

// setAbsolute sets the host of an absolute target and returns the rest. It returns other targets unchanged.
func (r *Request) setAbsolute(target string) string {
	scheme := strings.Index(target, "://")
	if scheme <= 0 {
		return target
	}
	host := target[scheme+len("://"):]
	slash := strings.IndexAny(host+"/", "/?#")
	r.setHost(host[:slash])
	if target = host[slash:]; target == "" || target[0] != '/' {
		target = "/" + target
	}
	return target
}

// isToken reports whether s can be a method (RFC 9110 §5.6.2).
func isToken(s string) bool {
	for _, c := range []byte(s) {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}
