// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Each format has its texts found, with their lines, and no code.
func TestExtract(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		kind       int
		want       []string // "line: text"
	}{
		{"a.js", "// One\n// two.\nconst re = /[/'\"]/, n = 4 / 2; // three\n/* four\n   five */\nf('six seven', 'one', `ab bc ${g(\"eight nine\")} c`);\n",
			inPages, []string{"1: One", "2: two.", "3: three", "4: four", "5: five", "6: eight nine", "6: ab bc x c", "6: six seven"}},
		{"a.html", "<!-- one\n     two -->\n<p title=\"three four\">Five <b>six</b>\nseven</p><script>\nno(code)\n</script>\n<p>Eight nine</p>",
			inPages, []string{"1: one", "2: two", "3: three four", "3: Five six", "4: seven", "7: Eight nine"}},
		{"a.css", "a { b: c } /* one\n\ttwo */\n", inFiles, []string{"1: one", "2: two"}},
		{"a.yaml", "# One\n# two.\nkey: a#b # three four\n#   code: x\nsummary: \"{{ $x }} five six\"\n",
			inFiles, []string{"1: One", "2: two.", "3: three four", "4: code: x", "5: x five six"}},
		{"a.json", "{\"description\": \"one \\\"two\\\"\\nthree four\",\n\"pattern\": \"no text\", \"title\": \"five six\"}",
			inFiles, []string{"1: one \"two\"", "1: three four", "2: five six"}},
		{"a.sql", "-- One\n-- two.\nSELECT 1; -- three four\n", inFiles, []string{"1: One", "2: two.", "3: three four"}},
		{"scripts/a", "#!/bin/sh\n# One.\necho \"two three\" >&2\n", inFiles, []string{"2: One.", "3: two three"}},
		{"a.tpl", "{{/* One\ntwo */}}\nThree {{ .x }} four\n", inFiles, []string{"1: One", "2: two", "3: Three x four"}},
	} {
		if !isChecked(tt.name) {
			t.Errorf("%s: not checked", tt.name)
			continue
		}
		kind, found := extract(tt.name, tt.text)
		if got := placed(found); kind != tt.kind || !slices.Equal(got, slices.Sorted(slices.Values(tt.want))) {
			t.Errorf("%s: got %s %q, want %s %q", tt.name, kinds[kind], got, kinds[tt.kind], tt.want)
		}
	}
}

func TestGoStrings(t *testing.T) {
	source := "package p\n\nimport \"some path/x\"\n\ntype t struct {\n\tf int `no: tag`\n}\n\n" +
		"var e = errors.New(\"one two; three four: five six\")\n\nvar s = \"five \" +\n\tf(\"six seven\") + \"eight\"\n\n" +
		"const long = `Nine ten.\n\n  code\nEleven.\n`\n"
	found, err := goStrings(source)
	want := []string{"11: five xeight", "12: six seven", "14: Nine ten.", "16: code", "17: Eleven.", "9: five six", "9: one two;", "9: three four:"}
	if got := placed(found); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

// placed returns the lines of the fragments with their numbers in the file, sorted.
func placed(fragments []fragment) []string {
	text, lines := markdown(fragments)
	var all []string
	for i, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, fmt.Sprintf("%d: %s", lines[i], line))
		}
	}
	return slices.Sorted(slices.Values(all))
}

func TestMeasure(t *testing.T) {
	d := measure([]source{
		{"a.go", "package p\n\n// What is it, and who?\n// Fine.\nvar whose int\n"},
		{"a_test.go", "// whose\n"},
		{"a.md", "Fine.\n\nNobody knows, nobody asks.\n"},
	})
	if d.lines[inComments] != 2 || d.lines[inDocs] != 2 || len(d.hits) != 2 {
		t.Errorf("got %+v, want 2 lines of each kind and 2 hits", d)
	}
	var b strings.Builder
	if d.report(&b) || !strings.Contains(b.String(), "1 odd phrases in 2 lines of docs, the maximum is 30 per 1,000") {
		t.Errorf("got %q, want a failure for docs", b.String())
	}
	if d := measure(nil); !d.report(&b) {
		t.Error("a report without sources fails")
	}
}

func TestLint_Places(t *testing.T) {
	t.Chdir("../..")
	hits, err := lint([]source{
		{"p.js", "// Fine.\n\nconst text = 'the server says so';\n"},
		{"p.yaml", "a: 1\n# It is in force.\n"},
	})
	var got []string
	for _, h := range hits {
		got = append(got, fmt.Sprintf("%s:%d %s %s", h.path, h.line, h.rule, kinds[h.kind]))
	}
	if want := []string{"p.js:3 Say pages", "p.yaml:2 Words files"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}
