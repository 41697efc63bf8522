// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/metehq/mete/cmd/internal/config"
)

// tenMistakes are ten errors of ten kinds.
const tenMistakes = `# hash_key: hunter2
listne: 127.0.0.1:8080
max_in_flight: many
jitter: true
jitter: false
timeouts: { drain: 10 }
upstream: ftp://user:hunter2@10.0.0.1
admin_listen: localhost
admin_tokens:
  - role: read
    token: hunter2hunter2hunter2
trust_jwt: true
jwt: { keys: https://id.example.com/jwks }
log_level: loud
max_header_bytes: 100
hash_key: hunter2
`

// Each error is reported once, with its place, the value, the remedy and an excerpt, and
// without a secret.
func TestLoad_TenMistakes(t *testing.T) {
	path := write(t, tenMistakes)
	_, err := load(path, nil)
	var got config.Errors
	if !errors.As(err, &got) {
		t.Fatalf("got %v, want config.Errors", err)
	}
	want := []struct{ mistake, excerpt string }{
		{"2:1: listne: unknown setting; did you mean listen?",
			"  1 | …\n> 2 | listne: …\n    | ^\n"},
		{`3:16: max_in_flight: "many" is not a whole number`,
			"  2 | listne: …\n> 3 | max_in_flight: many\n    |                ^\n"},
		{"5:1: jitter: already set on line 4: remove one of them",
			"  4 | jitter: true\n> 5 | jitter: false\n    | ^\n"},
		{`6:20: timeouts.drain: "10" is not a duration: write a number and a unit, such as 500ms, 10s or 2m`,
			"  5 | jitter: false\n> 6 | timeouts: { drain: 10 }\n    |                    ^\n"},
		{`7:11: upstream: "ftp://user:xxxxx@10.0.0.1" is not a URL such as http://127.0.0.1:3000`,
			"  6 | timeouts: { drain: 10 }\n> 7 | upstream: …\n    |           ^\n"},
		{`8:15: admin_listen: "localhost" is not host:port, such as 127.0.0.1:8080 or :8080`,
			"  7 | upstream: …\n> 8 | admin_listen: localhost\n    |               ^\n"},
		{"10:5: admin_tokens[0].name: is required: the log and the audit trail show it",
			"   9 | admin_tokens:\n> 10 |   - role: read\n     |     ^\n"},
		{"12:12: trust_jwt: excludes jwt.keys: tokens are either verified or trusted",
			"  11 |     token: …\n> 12 | trust_jwt: true\n     |            ^\n"},
		{`14:12: log_level: must be debug, info, warn or error, not "loud"`,
			"  13 | jwt: { keys: …                           }\n> 14 | log_level: loud\n     |            ^\n"},
		{"15:19: max_header_bytes: must be between 1024 and 1048576, not 100",
			"  14 | log_level: loud\n> 15 | max_header_bytes: 100\n     |                   ^\n"},
	}
	if len(got) != len(want) {
		t.Errorf("%d mistakes, want %d:\n%v", len(got), len(want), err)
	}
	for i, e := range got[:min(len(got), len(want))] {
		if e.Error() != path+":"+want[i].mistake || e.Excerpt != want[i].excerpt {
			t.Errorf("got  %s\n%swant %s\n%s", e.Error(), e.Excerpt, want[i].mistake, want[i].excerpt)
		}
		if strings.Contains(e.Error()+e.Excerpt, "hunter2") {
			t.Errorf("a secret is shown: %v\n%s", e, e.Excerpt)
		}
	}
}

// A file that is not YAML has an excerpt, too, and no secret in it.
func TestLoad_BrokenFilesHaveExcerpts(t *testing.T) {
	for text, want := range map[string]string{
		"listen: [\nhash_key: hunter2\n":               "> 1 | listen: [\n    |         ^\n",
		"listen: :80\nhash_key: \"hunter2\nhunter2\n":  "  1 | listen: :80\n> 2 | hash_key: …\n    |           ^\n",
		"listen: :80\nhash_kye: hunter2: hunter2\n":    "  1 | listen: :80\n> 2 | hash_kye: …      : …\n    |           ^\n",
		"admin_tokens:\n- token: hunter2\n\tname: x\n": "  2 | - token: …\n> 3 | \n    | ^\n",
	} {
		_, err := load(write(t, text), nil)
		var got config.Errors
		if !errors.As(err, &got) || len(got) != 1 || got[0].Excerpt != want || strings.Contains(err.Error()+got[0].Excerpt, "hunter2") {
			t.Errorf("%q: got %v\n%swant\n%s", text, err, append(got, config.Error{})[0].Excerpt, want)
		}
	}
}
