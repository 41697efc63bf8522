// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Each rule finds its pattern and accepts the sentence that replaces it.
func TestRules(t *testing.T) {
	sentences := []struct{ rule, bad, good string }{
		{"FreeRelative", "Who asks names the claims.", "Who may ask for claims?"},
		{"FreeRelative", "Where a rule has no key, one bucket serves all.", "If a rule has no key, one bucket serves all."},
		{"FreeRelative", "What clients send is checked.", "What to do in an emergency"},
		{"Heading", "## What claims are worth", "## JWT claims"},
		{"Idioms", "The log shows what became of a request.", "The log shows the request's outcome."},
		{"Idioms", "The switch is about logins.", "The question is about logins."},
		{"Idioms", "The rule is about logins.", "A call takes about 5 ms, which is about the same."},
		{"PerUnit", "A store pays 55 bytes a bucket.", "A store takes a second to write 55 bytes per bucket."},
		{"Percent", "It admits 10 % of the keys.", "It admits 10% of the keys."},
		{"Say", "The policy says which keys count.", "The policy lists the keys, and `say` is no flag."},
		{"SentenceLength", strings.Repeat("many ", 25) + "words.", strings.Repeat("many ", 24) + "words."},
		{"Spelling", "The bar has another colour.", "The bar has another color."},
		{"ThoseThat", "Two rules, of which the first counts.", "Limits follow those of the policy, one of which counts."},
		{"ThoseThat", "The store evicts those that are idle.", "The store evicts idle buckets."},
		{"WhatIs", "The answer is what clients get.", "What is the answer, and what was it?"},
		{"Who", "The key names who pays.", "The key names clients who pay."},
		{"Words", "A mistake in the file.", "A rule without a key is usually a mistake."},
		{"Words", "The store must forget a bucket.", "A Mistake has a place."},
		{"Words", "The policy is in force.", "The policy is active."},
	}
	var text strings.Builder
	for _, s := range sentences {
		text.WriteString(s.bad + "\n\n" + s.good + "\n\n")
	}
	name := filepath.Join(t.TempDir(), "sentences.md")
	if err := os.WriteFile(name, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir("../..")
	hits, err := vale([]string{name})
	if err != nil {
		t.Fatal(err)
	}
	found := map[int][]string{} // rules by line
	for _, h := range hits {
		found[h.line] = append(found[h.line], h.rule)
	}
	for i, s := range sentences {
		if got := found[4*i+1]; !slices.Contains(got, s.rule) {
			t.Errorf("%q: got %v, want %s", s.bad, got, s.rule)
		}
		if got := found[4*i+3]; len(got) > 0 {
			t.Errorf("%q: got %v, want none", s.good, got)
		}
	}
	rules, err := ruleNames(stylesDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules {
		// A cached result depends on the files that the test itself opens.
		if _, err := os.ReadFile(filepath.Join(stylesDir, r+".yml")); err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(sentences, func(s struct{ rule, bad, good string }) bool { return s.rule == r }) {
			t.Errorf("no sentence breaks the rule %s", r)
		}
	}
}

// Vale reads the comments of Go files. A sentence does not end at the end of a
// line, except in comments behind code.
// The output of an example is not prose.
func TestVale_GoComments(t *testing.T) {
	words := strings.Repeat("many ", 13)
	source := "package p\n\n// F has " + words + "\n// and " + words + "words.\nfunc F() {}\n\n" +
		"// Say is found here.\n//\n//\tsay := \"not here\"\nvar a = \"says\"\n\n" +
		"type T struct {\n\tx int // " + words + "\n\ty int // " + words + "\n}\n"
	name := filepath.Join(t.TempDir(), "p_test.go")
	source += "\nfunc Example() {\n\t// Output:\n\t// it says " + words + words + "\n\t//\n\t// it says more\n}\n"
	if err := os.WriteFile(name, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir("../..")
	hits, err := vale([]string{name})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, h := range hits {
		got = append(got, h.rule)
	}
	slices.Sort(got)
	if want := []string{"Say", "SentenceLength"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v in\n%s", hits, want, source)
	}
}
