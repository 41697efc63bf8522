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
	b.WriteString("# Policy warnings of `mete check`\n\n" +
		"`mete check` rejects an invalid policy. It also warns about valid parts that are probably not\n" +
		"intended, each with a stable code in brackets. A server logs the same warnings when it starts.\n" +
		"With `--strict`, warnings make the exit code 1; notes do not. `--format json` and `--format sarif`\n" +
		"report the code as `code` and `ruleId`, with `invalid-policy` for errors and `failed-test` for\n" +
		"failed tests of the policy.\n\n")
	for _, k := range lint.Kinds() {
		fmt.Fprintf(&b, "- [%s](#%s)\n", k.Code, k.Code)
	}
	b.WriteString("\n")
	for _, k := range lint.Kinds() {
		level := "warning"
		if k.Note {
			level = "note"
		}
		fmt.Fprintf(&b, "## %s\n\nA %s: %s. %s\n\n", k.Code, level, k.Summary, k.Why)
	}
	compare(t, "lint.md", strings.TrimSuffix(b.String(), "\n"))
}
