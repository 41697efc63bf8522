// SPDX-License-Identifier: Apache-2.0

package ratelimitfields_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/dialect"
	"github.com/metehq/mete/internal/ratelimitfields"
	"github.com/metehq/mete/policy"
)

// Limits near exhaustion warn the clients that they still allow.
func TestHeader_Warning(t *testing.T) {
	staged := func(name string, there bucket.Tokens, share string) mete.Status {
		l := newLimit(t, name, "10", "1/1s")
		l.Stages = []policy.Stage{{At: 8 * bucket.Token, Share: share}}
		return status(l, there, bucket.Token)
	}
	w := newWriter(t, ratelimitfields.Config{})
	for _, tc := range []struct {
		d    *mete.Decision
		want string
	}{
		{decision(staged("day", 5*bucket.Token, "80%")), ""},
		{decision(staged("day", 3*bucket.Token, "80%")), `"day";used=80`},
		{decision(staged("day", 1*bucket.Token, "80.5%")), `"day";used=80.5`},
		{decision(staged("day", 1*bucket.Token, "80%"), staged("week", 9*bucket.Token, "50%"), staged("all", 2*bucket.Token, "75%")), `"day";used=80, "all";used=75`},
		{decision(staged("day", 0, "80%")), ""}, // denied
	} {
		h := http.Header{}
		w.Header(h, tc.d)
		if got := strings.Join(h.Values("X-RateLimit-Warning"), "|"); got != tc.want {
			t.Errorf("warning %q, want %q", got, tc.want)
		}
	}
	silent := decision(staged("day", bucket.Token, "80%"))
	silent.Limits()[0].Rule = &policy.Rule{Headers: dialect.None}
	h := http.Header{}
	if w.Header(h, silent); len(h) > 0 {
		t.Errorf("fields %v of a rule that shows none", h)
	}
}
