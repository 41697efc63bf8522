// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policy/lint"
)

func TestDocs_AreTheSchema(t *testing.T) {
	compare(t, "policy.schema.json", string(policy.JSONSchema()))
}

func TestDocs_AreTheWarnings(t *testing.T) {
	var b strings.Builder
	b.WriteString("# What `mete check` warns of\n\n" +
		"A policy with a mistake is refused. One without may still not be what was meant:\n" +
		"`mete check` says so, and the server when it starts, with a word in brackets that\n" +
		"stays the same over versions. With `--strict` warnings make the exit code 1; notes\n" +
		"do not. `--format json` and `--format sarif` have the words as `code` and `ruleId`,\n" +
		"beside `invalid-policy` for mistakes and `failed-test` for tests in the policy.\n\n")
	for _, k := range lint.Kinds() {
		level := "warning"
		if k.Note {
			level = "note"
		}
		fmt.Fprintf(&b, "## %s\n\nA %s: %s. %s\n\n", k.Code, level, k.Summary, k.Why)
	}
	compare(t, "lint.md", strings.TrimSuffix(b.String(), "\n"))
}
