// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"testing"

	"github.com/metehq/mete/store"
)

func TestFamily(t *testing.T) {
	for key, want := range map[string]string{
		"client:ip=192.0.2.1":           "client:",
		"{acme}free/day:tenant=acme|#3": "free/day:",
		"all:":                          "all:",
		"all:|#12":                      "all:",
		"2001:db8::1":                   "",
		"user:42":                       "",
		"no colon":                      "",
		"{open:x=1":                     "{open:",
		"":                              "",
		"{}":                            "",
	} {
		if got := store.Family(key); got != want {
			t.Errorf("Family(%q) = %q, want %q", key, got, want)
		}
	}
}
