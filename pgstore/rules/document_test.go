// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/pgstore/rules"
	"github.com/metehq/mete/policy"
)

// TestDocument_SQLRuns runs the SQL in doc/rules.md and compiles the result.
func TestDocument_SQLRuns(t *testing.T) {
	text, err := os.ReadFile("../../doc/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) < 4 {
		t.Fatalf("doc/rules.md has %d blocks of SQL", len(blocks))
	}
	p := proctest.StartPostgres(t)
	d := openDatabase(t, p.URL(), "mete", rules.Config{})
	d.must(`CREATE ROLE mete_server LOGIN; CREATE ROLE mete_editor LOGIN`)
	for _, block := range blocks {
		d.must(block[1])
	}
	m := d.load()
	request := policy.Map{"header:x-user": "7", "jwt:plan": "free", "path": "/login", "method": "POST", "header:x-account": "a", "ip:address": "192.0.2.1"}
	if got, want := falls(m, request), "user-free:x-user=7 global: login:x-account=a|ip=192.0.2.1 stricter:x-user=7"; got != want {
		t.Errorf("a login falls under %q, want %q", got, want)
	}
}

// TestDocument_Rights proves that the documented privileges suffice to follow and edit, and for nothing else.
func TestDocument_Rights(t *testing.T) {
	text, err := os.ReadFile("../../doc/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	grants := regexp.MustCompile(`(?m)^GRANT .*$`).FindAllString(string(text), -1)
	p := proctest.StartPostgres(t)
	d := openDatabase(t, p.URL(), "mete", rules.Config{})
	d.source()
	d.must(`CREATE ROLE mete_server LOGIN; CREATE ROLE mete_editor LOGIN; ` + strings.Join(grants, " "))
	as := func(user string) string { return strings.Replace(p.URL(), "postgres@", user+"@", 1) }
	server := follow(t, as("mete_server"), "mete", rules.Config{})
	server.listening(1)
	if _, err := server.Edit(t.Context(), false, func(s *rules.Set) error { s.Rules = s.Rules[1:]; return nil }); err == nil {
		t.Error("a server may edit rules")
	}
	editor := openDatabase(t, as("mete_editor"), "mete", rules.Config{})
	editor.edit(func(s *rules.Set) error { s.Rules[0].BurstCapacity = "51"; return nil })
	if u := server.next(); u.err != nil {
		t.Error(u.err)
	}
	if err := editor.exec(`UPDATE {schema}.rate_limit_attribute SET attribute = 'path'`); err == nil {
		t.Error("an editor may change attributes")
	}
}
