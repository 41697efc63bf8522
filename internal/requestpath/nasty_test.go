// SPDX-License-Identifier: Apache-2.0

package requestpath_test

import (
	"math/rand/v2"
	"strings"
)

// A location is a place of a server with a rule: all paths with that prefix or, if exact, that path. All servers
// under test have the same locations.
type location struct {
	path  string
	exact bool
}

var locations = map[string]location{
	"chat":  {"/v1/chat", true},
	"admin": {"/admin/", false},
	"api":   {"/api", false},
}

// takes reports whether a rule about l applies to path.
func (l location) takes(path string) bool {
	return path == l.path || !l.exact && strings.HasPrefix(path, l.path)
}

// nasty are targets that were made to be taken for others, of each kind that is
// known, by servers or by us.
var nasty = []string{
	"/v1/chat", "/v1/chat/", "/v1/chat?x=1", "/v1/chat%3Fx=1", "/v1/chat?/../../admin/", "/V1/chat", "/v1/%63hat", "/v1/%2563hat",
	"//v1/chat", "/v1//chat", "/v1/./chat", "/./v1/chat", "/v1/x/../chat", "/v1/chat/.", "/v1/chat/..", "/v1/chat/x/..", "/v1%2fchat", "/%2fv1/chat",
	"/v1/%2e/chat", "/v1/%2e%2e/v1/chat", "/v1/x/%2E%2e/chat", "/v1/x/.%2e/chat", "/v1/x%2f../chat", "/v1/x%2f..%2fchat", "/x/..%2fv1/chat",
	"/v1/chat;x", "/v1;x/chat", "/v1/chat;", "/v1/chat%3bx", "/v1/x/..;/chat", "/v1/;/chat", "/;/v1/chat", "/v1/x/..%3b/chat",
	`/v1\chat`, "/v1%5cchat", `/v1/x\..\chat`, "/v1/x/..%5cchat", `\v1\chat`,
	"/v1/chat#", "/v1/chat#x", "/v1/chat#/../../x", "/v1/chat%23x", "/x#/../v1/chat", "/v1/chat?#", "/v1/chat#?",
	"/v1/chat%00", "/v1/chat%00.png", "/v1/chat%20", "/v1/chat%09", "/v1/chat%0a", "/v1/chat.", "/v1/chat\xa0", "/v1/chat\x85", "/v1/chat%a0",
	"/v1/%252e%252e/v1/chat", "/x/%252e%252e/v1/chat", "/v1/%c0%ae%c0%ae/chat", "/v1/chat%", "/v1/chat%2", "/v1/chat%zz",
	"http://a/v1/chat", "http://a//v1/chat?x", "HTTP://a/x/../v1/chat", "http://a/v1/x/%2e%2e/chat", "http://a#/v1/chat", "http://a?/v1/chat",
	"/admin", "/admin/", "/admin/x", "/admin%2fx", "/admin/%2e%2e/x", "/admin/..%2fx", "/admin%2f..%2fx", "/admin/..;/x", `/admin\x`, "/admin/../x",
	"/admin/x/../../y", "/admin//../x", "/admin/./../x", "/admin/;/../x", "/admin;/../x", "/admin;/x", "/x/../admin/y", "/x/..//admin/y", "/x%2f..%2fadmin/y",
	"/api", "/apix", "/api/", "/api;x", "/api/..;/x", "/api%2f..", "/api/%2e%2e", "/api..", "/api/..", `/api\..`, "/api#/..", "/api?/..",
	"/", "*", "//", "/..", "/../../", "/%2e", "/.;", "/..;",
}

// pieces are the parts of nasty targets.
var pieces = []string{
	"/", "/", "/", "//", ".", "..", "/..", "/../", "/./", "%2e", "%2E%2e", "%2f", "%2F", "%5c", `\`, ";", ";x=1", "%3b", "?", "%3F", "#", "%23", "%", "%25",
	"%252e", "%252f", "%00", "a", "x/", "admin", "/admin/", "v1", "chat", "/v1/chat", "api", "ADMIN", "%61", "%70", "\xa0", "é", "%c3%a9", "%c0%ae", "&", "=", "~", "+", "%20", "%0a",
}

// randomTarget returns a target made of pieces, or one of a location with some
// pieces put into it.
func randomTarget(rng *rand.Rand) string {
	target := "/"
	if places := []string{"/v1/chat", "/admin/x", "/admin/", "/api/x", "/x/v1/chat", "/"}; rng.IntN(4) > 0 {
		target = places[rng.IntN(len(places))]
	}
	for range 1 + rng.IntN(5) {
		at := 1 + rng.IntN(len(target))
		target = target[:at] + pieces[rng.IntN(len(pieces))] + target[at:]
	}
	return target
}
