// SPDX-License-Identifier: Apache-2.0

package requesttext_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/metehq/mete/internal/requesttext"
	"github.com/metehq/mete/policy"
)

// FuzzRead checks that every text is read or refused, and that a policy can name the
// attributes.
func FuzzRead(f *testing.F) {
	f.Add("GET /x HTTP/1.1\nHost: h\nCookie: a=1; b=\"2\"\n\nbody")
	f.Add(":method: GET\n:path: /x\n:authority: h")
	f.Add("GET /v1/x?a=1 ip=192.0.2.1\nheader:a=b\ncost=1.5")
	f.Add("GET / HTTP/1.1\nHost: h\nAuthorization: Bearer e30.eyJzdWIiOiJ1MSJ9.x")
	f.Fuzz(func(t *testing.T, text string) {
		if r, err := requesttext.Read(text); err == nil {
			checkAttributes(t, &r)
		}
	})
}

func checkAttributes(t *testing.T, r *requesttext.Request) {
	t.Helper()
	for name, value := range r.Attributes {
		if usual, err := policy.NormalizeAttribute(name); err != nil || usual != name {
			t.Fatalf("attribute %q: %v", name, err)
		}
		if !utf8.ValidString(value) && !strings.HasPrefix(name, "query:") && name != "path" {
			t.Fatalf("attribute %q is %q, which is not UTF-8", name, value)
		}
	}
}
