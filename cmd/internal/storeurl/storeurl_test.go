// SPDX-License-Identifier: Apache-2.0

package storeurl_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/metehq/mete/cmd/internal/storeurl"
)

func TestParse(t *testing.T) {
	type memory struct {
		keys  int
		file  string
		every time.Duration
	}
	for raw, want := range map[string]memory{
		"memory:":                        {},
		"memory:?":                       {},
		"memory:?max_keys=1":             {1, "", 0},
		"memory:?max_keys=1000":          {1000, "", 0},
		"memory:?file=a":                 {0, "a", time.Minute},
		"memory:?file=/a%20b/%26c":       {0, "/a b/&c", time.Minute},
		"memory:?every=10s&file=../a":    {0, "../a", 10 * time.Second},
		"memory:?file=a&every=0":         {0, "a", 0},
		"memory:?file=a&every=0s":        {0, "a", 0},
		"memory:?max_keys=2&file=é":      {2, "é", time.Minute},
		"memory:?file=a&every=1d":        {0, "a", 24 * time.Hour},
		"memory:?every=10ms&file=C:%5Ca": {0, `C:\a`, 10 * time.Millisecond},
	} {
		u, err := storeurl.Parse(raw)
		if err != nil {
			t.Errorf("Parse(%q): %v", raw, err)
			continue
		}
		if got := (memory{u.Memory.MaxKeys, u.File, u.Every}); got != want || u.Scheme != storeurl.Memory || u.Remote() || u.String() != raw {
			t.Errorf("Parse(%q) = %+v, scheme %s, shown %s, want %+v", raw, got, u.Scheme, u, want)
		}
	}
	for raw, want := range map[string]struct {
		scheme       storeurl.Scheme
		prefix, name string
	}{
		"redis://u:p@host/1?prefix=a:": {storeurl.Redis, "a:", "Redis"},
		"redis+cluster://a,b":          {storeurl.Redis, "mete:", "Redis"},
		"postgres://u:p@a/d?schema=s":  {storeurl.Postgres, "s", "PostgreSQL"},
		"postgresql://a:1/d":           {storeurl.Postgres, "", "PostgreSQL"},
	} {
		u, err := storeurl.Parse(raw)
		if err != nil {
			t.Errorf("Parse(%q): %v", raw, err)
			continue
		}
		if got := u.Redis.Config.Prefix + u.Postgres.Config.Schema; got != want.prefix || u.Scheme != want.scheme || u.Scheme.Name() != want.name || !u.Remote() ||
			(u.Postgres.Options != nil) != (want.scheme == storeurl.Postgres) || (len(u.Redis.Options.InitAddress) > 0) != (want.scheme == storeurl.Redis) {
			t.Errorf("Parse(%q) = %+v %q, want scheme %s with %q", raw, u, got, want.scheme, want.prefix)
		}
		if strings.Contains(fmt.Sprintf("%v %+v", u, struct{ Store *storeurl.URL }{u}.Store), ":p@") {
			t.Errorf("Parse(%q) shows its password", raw)
		}
	}
}

// Relative paths count from the directory; nothing else changes.
func TestParseIn(t *testing.T) {
	for raw, want := range map[string]string{
		"memory:?file=a": "memory:?file=/etc/x%26y/a",
		"memory:?max_keys=5&file=..%2Fa+b&every=1s":  "memory:?max_keys=5&file=/etc/a%20b&every=1s",
		"memory:?file=/a%26b":                        "memory:?file=/a%26b",
		"memory:":                                    "memory:",
		"redis://host/?prefix=a":                     "redis://host/?prefix=a",
		"postgres://a/d?prefix=x&passfile=..%2F+%25": "postgres://a/d?prefix=x&passfile=/etc/%2B%25",
	} {
		if got, err := storeurl.ParseIn("/etc/x&y", raw); err != nil || got.String() != want {
			t.Errorf("ParseIn(%q) = %v, %v, want %q", raw, got, err, want)
		}
		if got, err := storeurl.ParseIn("", raw); err != nil || got.String() != raw {
			t.Errorf("ParseIn without a directory: %v, %v, want %q", got, err, raw)
		}
	}
}

func TestParse_Refuses(t *testing.T) {
	for _, tt := range []struct{ raw, want string }{
		{"", "unknown kind of store"},
		{"memory", "store: unknown kind of store"},
		{"floppy:a", `"floppy": unknown kind of store`},
		{"floppy://u:secret@a", `"floppy": unknown kind of store`},
		{"floppy:secret@a", `"floppy": unknown kind of store`},
		{"redis://:secret@localhost:port", "not a valid host"},
		{"redis://localhost?pasword=secret", `unknown parameter "pasword"`},
		{"redis+ssl://:secret@localhost", "must begin with redis://"},
		{"redis:secret", "must begin with redis://"},
		{"://secret", "not a URL"},
		{"postgres://u:secret@localhost:port", ""},
		{"postgres://u:secret@localhost/d?pasword=secret", "pasword"},
		{"postgres:secret", "postgres://"},
		{"postgres://localhost/d?durable=perhaps", "durable"},
		{"host=localhost password=secret", "unknown kind of store"},
		{"memory://secret", "accepts only"},
		{"memory:secret", "accepts only"},
		{"memory:?max_keys=%zz", "accepts only"},
		{"memory:?max_keys=1#secret", "accepts only"},
		{"memory:?max_keys", "above 0"},
		{"memory:?max_keys=-1", `"-1": must be a whole number above 0`},
		{"memory:?max_keys=0", "above 0"},
		{"memory:?max_keys=1e3", "above 0"},
		{"memory:?max_keys=99999999999999999999", "above 0"},
		{"memory:?max_keys=1&max_keys=2", "once"},
		{"memory:?size=1", `unknown parameter "size"`},
		{"memory:?file=", "must name a file"},
		{"memory:?file=a&file=b", "once"},
		{"memory:?every=1m", "requires file=PATH"},
		{"memory:?file=a&every=", `"" is not a duration`},
		{"memory:?file=a&every=60", `"60" is not a duration`},
		{"memory:?file=a&every=1ms", "between 10ms and 24h0m0s, not 1ms"},
		{"memory:?file=a&every=25h", "between 10ms and 24h0m0s"},
	} {
		_, err := storeurl.Parse(tt.raw)
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("Parse(%q): %v, want an error with %q and no secret", tt.raw, err, tt.want)
		}
	}
}

func TestShown(t *testing.T) {
	for raw, want := range map[string]string{
		"memory:?file=a":                      "memory:?file=a",
		"redis://host":                        "redis://host",
		"redis://:secret@host":                "redis://host",
		"redis://u:secret@[::1]:1/2?prefix=a": "redis://[::1]:1/2?prefix=a",
		"redis://:se%40cret@host?prefix=@":    "redis://host?prefix=@",
		"redis://:se@cret@host":               "?",
		"redis+unix://u:secret@/a@b?db=1":     "redis+unix:///a@b?db=1",
		"redis+sentinel://u:secret@a,b/m?sentinel_password=secret&prefix=p":  "redis+sentinel://a,b/m?sentinel_password=xxxxx&prefix=p",
		"postgres://u:secret@host/d?schema=a%40b":                            "postgres://host/d?schema=a%40b",
		"postgres://u:se%40cret@[::1]:1/a%40b":                               "postgres://[::1]:1/a%40b",
		"postgres://a:1,b:2/d?user=secret&password=secret&prefix=p":          "postgres://a:1,b:2/d?user=xxxxx&password=xxxxx&prefix=p",
		"postgresql:///d?host=/run/postgresql&p%61ssword=secret%20&prefix=p": "postgresql:///d?host=/run/postgresql&password=xxxxx&prefix=p",

		// Where the URL is wrong, it cannot be said where the password ends.
		"postgres://u:secret/word@host/d":       "?",
		"postgres://u:secret?word@host/d":       "?",
		"postgres://host/d?password=secret%":    "?",
		"host=localhost user=u password=secret": "?",
		"redis://:secret/word@host":             "?",
		"floppy://u:secret@host":                "?",
		"%":                                     "?",
	} {
		if got := storeurl.Shown(raw); got != want {
			t.Errorf("Shown(%q) = %q, want %q", raw, got, want)
		}
	}
}
