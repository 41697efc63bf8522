// SPDX-License-Identifier: Apache-2.0

package storeurl_test

import (
	"strings"
	"testing"

	"github.com/metehq/mete/cmd/internal/storeurl"
)

func TestParse(t *testing.T) {
	for raw, want := range map[string]int{"memory:": 0, "memory:?": 0, "memory:?max_keys=1": 1, "memory:?max_keys=1000": 1000} {
		c, err := storeurl.Parse(raw)
		if err != nil || c.MaxKeys != want {
			t.Errorf("Parse(%q) = %d keys, %v, want %d", raw, c.MaxKeys, err, want)
		}
	}
}

func TestParse_Refuses(t *testing.T) {
	for _, tt := range []struct{ raw, want string }{
		{"", "unknown kind of store"},
		{"memory", "unknown kind of store"},
		{"floppy:a", `"floppy": unknown kind of store`},
		{"floppy://u:secret@a", `"floppy": unknown kind of store`},
		{"floppy:secret@a", `"floppy": unknown kind of store`},
		{"redis://:secret@localhost", "redis: is not supported yet"},
		{"postgres://u:secret@localhost:port", "not a URL"},
		{"memory://secret", "nothing else"},
		{"memory:secret", "nothing else"},
		{"memory:?max_keys=%zz", "nothing else"},
		{"memory:?max_keys=1#secret", "nothing else"},
		{"memory:?max_keys", "above 0"},
		{"memory:?max_keys=-1", `"-1": must be a whole number above 0`},
		{"memory:?max_keys=0", "above 0"},
		{"memory:?max_keys=1e3", "above 0"},
		{"memory:?max_keys=99999999999999999999", "above 0"},
		{"memory:?max_keys=1&max_keys=2", "once"},
		{"memory:?size=1", `unknown parameter "size"`},
	} {
		_, err := storeurl.Parse(tt.raw)
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("Parse(%q): %v, want an error with %q and no secret", tt.raw, err, tt.want)
		}
	}
}
