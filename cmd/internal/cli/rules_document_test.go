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
	d.wantOutput(1, "name one of them: user-free, stricter", "set", "--pattern", "user:{user_id}", "--plan", "free", "--rate", "1")
}

// A rate over any period works as for an override. A rate that is not a number of tokens per second goes
// into spec, next to the other fields.
func TestRules_RateOverATime(t *testing.T) {
	d := newRulesDB(t)
	d.wantOutput(0, "+ a: algorithm_config/burst 20, algorithm_config/rps 10, group g, is_active true,", "set", "a", "--pattern", "ip:{ip}", "--rate", "10/1s", "--burst", "20", "--spec", `{"group":"g"}`)
	d.wantOutput(0, "~ a: algorithm_config/rps 0.5 (was 10)\n", "set", "a", "--rate", "30/1m")
	d.wantOutput(0, "~ a: algorithm_config/rate 5/1m (was NULL), algorithm_config/rps NULL (was 0.5)\n",
		"set", "a", "--rate", "5/1m")
	d.wantOutput(0, "~ a: algorithm_config/burst 3 (was 20)\n", "set", "a", "--burst", "3")
	d.wantOutput(0, "~ a: algorithm_config/rate 7/1h (was 5/1m), mode shadow (was NULL)\n", "set", "a", "--rate", "7/1h", "--mode", "shadow")
	d.wantOutput(0, "~ a: algorithm_config/rate NULL (was 7/1h), algorithm_config/rps 2 (was NULL)\n", "set", "a", "--rate", "2")
	d.wantOutput(1, "--rate 5/1m needs a burst: set --burst, too", "set", "b", "--pattern", "global", "--rate", "5/1m")
	d.wantOutput(0, "+ b: ", "set", "b", "--pattern", "global", "--rate", "5/1m", "--burst", "3")
	d.wantOutput(2, `--rate: "5/x" is neither a number of tokens per second nor a rate such as 5/1m`, "set", "new", "--rate", "5/x")
	d.wantOutput(2, `is neither`, "set", "new", "--rate", "0/1s")
}
