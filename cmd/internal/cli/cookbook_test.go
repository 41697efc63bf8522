// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The commands of doc/cookbook.md can be copied. Some explain a denial.
func TestCookbook_Commands(t *testing.T) {
	text, err := os.ReadFile("../../../doc/cookbook.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile(`(?m)^    mete (.*)$`).FindAllStringSubmatch(string(text), -1)
	if len(commands) < 20 {
		t.Fatalf("doc/cookbook.md has %d commands", len(commands))
	}
	t.Chdir("../../..")
	for _, command := range commands {
		stdout, stderr, code := run(t, words(command[1])...)
		if code > 1 || stdout == "" || strings.Contains(stdout, "warning:") {
			t.Errorf("mete %s: code %d\n%s%s", command[1], code, stdout, stderr)
		}
	}
}

// words splits a command as a shell does that knows single quotes.
func words(command string) (all []string) {
	for i, part := range strings.Split(command, "'") {
		if i%2 == 1 {
			all = append(all, part)
		} else {
			all = append(all, strings.Fields(part)...)
		}
	}
	return all
}
