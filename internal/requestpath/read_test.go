// SPDX-License-Identifier: Apache-2.0

package requestpath_test

import (
	"net/url"
	"testing"

	"github.com/metehq/mete/internal/requestpath"
)

// One reading has the results of the three functions that each read a path for one use.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"/", "", "*", "%2A", "/a/../b;x", "//%2e%2e/%2f", `\..;`, "/a;x/b;y", "/;x/a;", "/a/%00/../b", "/a/../%00", "/a//b;\x00", "/a/../\xff", "/a\xff", "/%61", "/a%2Fb", "/a//b;c", "a/b", "http://a/b", "/a?b", "/a#b", "/a/..%2f;x/b",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		checkRead(t, text, "")
		if decoded, err := url.PathUnescape(text); err == nil && text != "" {
			checkRead(t, decoded, text)
		}
	})
}

// checkRead compares one reading with three.
func checkRead(t *testing.T, decoded, sent string) {
	t.Helper()
	var want requestpath.Place
	if want.Path, want.Disputed = requestpath.ParseDecoded(decoded); sent != "" {
		want.Path, want.Disputed = requestpath.Parse(sent)
	}
	want.Resolved, want.ResolvedDisputed = requestpath.Resolve(decoded), want.Disputed
	if want.Resolved != decoded {
		_, want.ResolvedDisputed = requestpath.ParseDecoded(want.Resolved)
	}
	got := requestpath.Read(decoded, sent)
	got.Unsplit = "" // see FuzzTemplate and TestFacts_EscapedSlashes
	if got != want {
		t.Errorf("Read(%q, %q) = %+v, want %+v", decoded, sent, got, want)
	}
}

func TestRead_AllocatesNothing(t *testing.T) {
	for _, path := range []string{"/", "/v1/items/42", "/.well-known/acme-challenge/x", "*"} {
		if got := testing.AllocsPerRun(100, func() { requestpath.Read(path, "") }); got != 0 {
			t.Errorf("Read(%q) allocates %v times, want 0", path, got)
		}
	}
}
