// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/metehq/mete/internal/proctest"
)

// The JSON of every command is one line with a stable shape, whatever the answer.
func TestFormat_JSON(t *testing.T) {
	url, dir := adminServer(t), t.TempDir()
	file := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(file, []byte("name: a\nlimit_keys: [\"ip:address\"]\nalgorithm_config: {rps: 1, burst: 2}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args string
		code int
		want string // a regular expression
	}{
		{"version", 0, `{"version":".+","modified":(true|false),"go":"go.+","platform":"\w+/\w+"}`},
		{"health --server " + url, 0, `{"ok":true}`},
		{"take --server " + url + " header:x-api-key=k1", 0, `{"allowed":true,.*}`},
		{"peek --server " + url + " header:x-api-key=k1", 1, `{"allowed":false,.*}`},
		{"reset --server " + url + " header:x-api-key=k1", 0, `{"done":true}`},
		{"refund --server " + url + " header:x-api-key=k1", 0, `{"done":true}`},
		{"refund --server " + url + " header:x-api-kye=k1", 1, `{"done":false}`},
		{"override set --action block --match path=/x --expires 1h --reason r --author a --id x --server " + url, 0, `{"id":"x",.*}`},
		{"override list --server " + url, 0, `{.*"overrides":\[.*\].*}`},
		{"override remove x --reason r --author a --server " + url, 0, `{"removed":\["x"\]}`},
		{"explain --server " + url + " header:x-api-key=k1", 0, `{.*"decision":{.*`},
		{"explain " + file + " ip=192.0.2.1", 0, `{.*"decision":{.*`},
		{"check " + file, 0, `{"file":".+","valid":true,.*}`},
		{"sign --new-key " + dir + "/key", 0, `{"private_key":".+/key.pem","public_key":".+/key.pub.pem"}`},
		{"sign --private-key " + dir + "/key.pem " + file, 0, `{"signatures":\[".+/policy.yaml.sig"\]}`},
	} {
		stdout, stderr, code := run(t, append(strings.Fields(tt.args), "--format", "json")...)
		if code != tt.code || stderr != "" || !regexp.MustCompile(`^`+strings.ReplaceAll(tt.want, "{", `\{`)+`\n$`).MatchString(stdout) {
			t.Errorf("mete %s: code %d, %s%s; want %d and %s", tt.args, code, stdout, stderr, tt.code, tt.want)
		}
	}
	wantRun(t, 0, `\{"ok":true,"rules":1\}\n`, "", "serve", file, "--check", "--format", "json")
}

// Every command that has an answer has --format json.
func TestFormat_IsEverywhere(t *testing.T) {
	for _, name := range commandNames(t) {
		if name == "completion" {
			continue // a script is a script
		}
		names := [][]string{{name}}
		for _, sub := range subcommandNames(t, name) {
			names = append(names, []string{name, sub})
		}
		for _, name := range names {
			if name[0] == "rules" && len(name) == 1 {
				continue // it only has subcommands
			}
			if help := helpOf(t, name...); !regexp.MustCompile(`--format FORMAT +(with --check: the )?FORMAT of the output:`).MatchString(help) {
				t.Errorf("mete %s has no --format json", strings.Join(name, " "))
			}
		}
	}
}

// The exit codes of refusals and of servers that are away, for every command that asks one.
func TestExitCodes_OfServers(t *testing.T) {
	away := "http://" + proctest.FreeAddr(t)
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusForbidden)
		io.WriteString(w, `{"title":"Forbidden","status":403,"detail":"this needs another role"}`)
	}))
	defer refusing.Close()
	for _, args := range []string{"take ip=a", "peek ip=a", "reset ip:address=a", "refund ip:address=a", "reload", "top", "override list",
		"override remove x --reason r", "peek --key k", "explain ip=192.0.2.1", "dashboard --print"} {
		args = strings.ReplaceAll(args, " ip=a", " ip:address=a")
		fields := append(strings.Fields(args), "--server")
		if stdout, stderr, code := run(t, append(fields, away)...); code != 3 || stdout != "" || !strings.Contains(stderr, "does not answer") {
			t.Errorf("mete %s, of nobody: code %d, %q, %q; want 3", args, code, stdout, stderr)
		}
		if stdout, stderr, code := run(t, append(fields, refusing.URL)...); code != 4 || stdout != "" || !strings.Contains(stderr, "rejects the request: this needs another role; set --token-file or $METE_TOKEN") {
			t.Errorf("mete %s, without the role: code %d, %q, %q; want 4", args, code, stdout, stderr)
		}
	}
}
