// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The commands of doc/rules.md work after the SQL above them.
func TestRules_Document(t *testing.T) {
	text, err := os.ReadFile("../../../doc/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	d := newRulesDB(t)
	d.do(0, "list") // makes the tables
	u, err := url.Parse(d.url)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		if !strings.Contains(block[1], "GRANT ") { // roles are for the whole server
			execSQL(t, strings.ReplaceAll(block[1], " mete.", ` "`+u.Query().Get("schema")+`".`))
		}
	}
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte("rules: [{ name: a, limit_keys: [host], algorithm_config: { rps: 1, burst: 2 } }]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile(`(?m)^    mete rules --db URL (.*)$`).FindAllStringSubmatch(string(text), -1)
	if len(commands) < 6 {
		t.Fatalf("doc/rules.md has %d commands", len(commands))
	}
	for _, command := range commands {
		line, _, _ := strings.Cut(command[1], " > ")
		var args []string
		for _, word := range regexp.MustCompile(`'[^']*'|\S+`).FindAllString(line, -1) {
			args = append(args, strings.ReplaceAll(strings.Trim(word, "'"), "policy.yaml", file))
		}
		d.do(0, args...)
	}
	d.do(0, "enable", "stricter")
	d.says(1, "name one of them: user-free, stricter", "set", "--pattern", "user:{user_id}", "--plan", "free", "--rate", "1")
}

// A rate over another time than a second is said in spec, as the error says.
func TestRules_RateForSpec(t *testing.T) {
	d := newRulesDB(t)
	for _, args := range [][]string{
		{"set", "new", "--pattern", "ip:{ip}"},
		{"set", "new", "--rate", "", "--burst", ""},
	} {
		d.says(2, `for 5/1m say --rate '' --burst '' --spec '{"algorithm_config":{"rate":"5/1m","burst":3}}'`, append(args, "--rate", "5/1m")...)
		d.do(0, append(args, "--rate", "", "--burst", "", "--spec", `{"algorithm_config":{"rate":"5/1m","burst":3}}`)...)
		d.do(0, "set", "new", "--rate", "1", "--burst", "2", "--spec", "{}")
	}
	d.says(2, `"5/x" is no number of tokens a second`+"\n", "set", "new", "--rate", "5/x")
}
