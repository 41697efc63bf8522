// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"path"
	"regexp"
	"strings"
)

// A fragment is a text inside a file that is not a document.
type fragment struct {
	line   int // the line of the file where text starts
	text   string
	single bool // all of text is on that line of the file, as an escaped string
}

// special are characters that Markdown or HTML would interpret.
var special = strings.NewReplacer("<", " ", ">", " ", "*", " ", "|", " ", "\t", " ", "\r", " ")

// set are lines of code, tables and lists: indented ones and YAML fields.
var set = regexp.MustCompile(`^(?:  |\t)|^\s*(?:- )?[\w.-]+:(?: |$)`)

// markdown returns the fragments as paragraphs, and for each line of the result
// its line in the file. Lines of code are paragraphs of their own.
func markdown(fragments []fragment) (text string, lines []int) {
	var b strings.Builder
	write := func(line string, n int) {
		b.WriteString(line + "\n")
		lines = append(lines, n)
	}
	for _, f := range fragments {
		n := f.line
		for line := range strings.SplitSeq(f.text, "\n") {
			words := strings.TrimLeft(special.Replace(line), " #-=+")
			if set.MatchString(line) {
				write("", n)
				write(words, n)
				write("", n)
			} else {
				write(words, n)
			}
			if !f.single {
				n++
			}
		}
		write("", n)
	}
	return b.String(), lines
}

// extractors return the texts of a file, by extension or base name.
var extractors = map[string]struct {
	kind    int
	extract func(text string) []fragment
}{
	".js": {inPages, scriptTexts}, ".html": {inPages, pageTexts},
	".mjs": {inFiles, scriptTexts}, ".css": {inFiles, styleComments},
	".yaml": {inFiles, yamlTexts}, ".yml": {inFiles, yamlTexts}, ".json": {inFiles, jsonTexts},
	".sql": {inFiles, lineComments("--")}, ".lua": {inFiles, lineComments("--")}, ".s": {inFiles, lineComments("//")},
	".sh": {inFiles, shellTexts}, ".conf": {inFiles, lineComments("#")}, ".cfg": {inFiles, lineComments("#")},
	".service": {inFiles, lineComments("#")}, ".toml": {inFiles, lineComments("#")}, ".ini": {inFiles, lineComments("#")},
	".tpl": {inFiles, templateText}, "NOTES.txt": {inFiles, templateText},
	"Makefile": {inFiles, shellTexts}, "Caddyfile": {inFiles, lineComments("#")},
	"Dockerfile": {inFiles, lineComments("#")}, ".gitignore": {inFiles, lineComments("#")},
}

var scripts = regexp.MustCompile(`^(scripts/[^./]+|\.ci/[^./]+)$`)

// extract returns the kind and the texts of a file that Vale cannot read.
func extract(name, text string) (kind int, fragments []fragment) {
	key := path.Ext(name)
	if _, ok := extractors[path.Base(name)]; ok {
		key = path.Base(name)
	} else if scripts.MatchString(name) {
		key = ".sh"
	}
	e := extractors[key]
	return e.kind, e.extract(text)
}

// isExtracted reports whether extract knows the format of a file.
func isExtracted(name string) bool {
	_, byExt := extractors[path.Ext(name)]
	_, byBase := extractors[path.Base(name)]
	return byExt || byBase || scripts.MatchString(name)
}

// lineComments returns a function that finds comments from mark to the end of a
// line. Comments that fill consecutive lines are one fragment.
func lineComments(mark string) func(text string) []fragment {
	comment := regexp.MustCompile(`(^|\s)` + mark + `+($|\s.*$)`)
	return func(text string) []fragment {
		var all []fragment
		joins := false // whether the line before is a comment alone
		for i, line := range strings.Split(text, "\n") {
			m := comment.FindStringSubmatchIndex(line)
			if m == nil {
				joins = false
				continue
			}
			words := strings.TrimRight(strings.TrimPrefix(line[m[4]:], " "), " \r")
			alone := strings.TrimSpace(line[:m[0]]) == ""
			switch {
			case words == "" || !alone && !isProse(words):
				joins = false
				continue
			case alone && joins:
				all[len(all)-1].text += "\n" + words
			default:
				all = append(all, fragment{line: i + 1, text: words})
			}
			joins = alone
		}
		return all
	}
}

var (
	yamlText     = regexp.MustCompile(`^\s*(?:- )?(?:summary|description|title|reason|help): +(.*)$`)
	jsonText     = regexp.MustCompile(`"(?:summary|description|title|text|reason|name)": *("(?:[^"\\]|\\.)*")`)
	shellMessage = regexp.MustCompile(`\b(?:echo|printf|step|die|fail) +("[^"]*"|'[^']*')`)
	action       = regexp.MustCompile(`(?s)\{\{.*?\}\}`)
)

func shellTexts(text string) []fragment {
	all := lineComments("#")(text)
	for i, line := range strings.Split(text, "\n") {
		for _, m := range shellMessage.FindAllStringSubmatch(line, -1) {
			if words := strings.Trim(m[1], `"'`); isProse(words) {
				all = append(all, fragment{line: i + 1, text: words, single: true})
			}
		}
	}
	return all
}

func yamlTexts(text string) []fragment {
	all := lineComments("#")(text)
	for i, line := range strings.Split(text, "\n") {
		if m := yamlText.FindStringSubmatch(line); m != nil {
			all = append(all, fragment{line: i + 1, text: action.ReplaceAllString(strings.Trim(m[1], `"'`), "x")})
		}
	}
	return all
}

func jsonTexts(text string) []fragment {
	var all []fragment
	for i, line := range strings.Split(text, "\n") {
		for _, m := range jsonText.FindAllStringSubmatch(line, -1) {
			var s string
			if json.Unmarshal([]byte(m[1]), &s) == nil && isProse(s) {
				all = append(all, fragment{line: i + 1, text: s, single: true})
			}
		}
	}
	return all
}

// templateText returns the text of a template without its actions, which may be comments.
func templateText(text string) []fragment {
	return []fragment{{line: 1, text: action.ReplaceAllStringFunc(text, func(a string) string {
		if words, isComment := strings.CutPrefix(strings.TrimLeft(a, "{- "), "/*"); isComment {
			return strings.TrimRight(words, "*/-} ")
		}
		return "x" + strings.Repeat("\n", strings.Count(a, "\n"))
	})}}
}

var (
	pageTag     = regexp.MustCompile(`(?s)<!--.*?-->|<(?:script|style)\b.*?</(?:script|style)>|<[^>]*>`)
	pageComment = regexp.MustCompile(`(?s)^<!--(.*)-->$`)
	pageLabel   = regexp.MustCompile(`\b(?:aria-label|title|placeholder|alt|content)="([^"]* [^"]*)"`)
	pageInline  = regexp.MustCompile(`^</?(?:a|abbr|b|code|em|i|kbd|small|span|strong|time|var)\b`)
)

// pageTexts returns the text, the comments and the labels of an HTML page.
func pageTexts(text string) []fragment {
	text = action.ReplaceAllStringFunc(text, func(a string) string { return "x" + strings.Repeat("\n", strings.Count(a, "\n")) })
	var all []fragment
	words, from, line := "", 1, 1
	end := func() {
		if isProse(words) {
			all = append(all, fragment{line: from, text: words})
		}
		words, from = "", line
	}
	for text != "" {
		at := pageTag.FindStringIndex(text)
		if at == nil {
			at = []int{len(text), len(text)}
		}
		tag := text[at[0]:at[1]]
		words += text[:at[0]]
		line += strings.Count(text[:at[0]], "\n")
		isInline := pageInline.MatchString(tag)
		if !isInline {
			end()
		}
		if m := pageComment.FindStringSubmatch(tag); m != nil {
			all = append(all, fragment{line: line, text: m[1]})
		} else if m := pageLabel.FindStringSubmatch(tag); m != nil {
			all = append(all, fragment{line: line, text: m[1]})
		}
		if n := strings.Count(tag, "\n"); isInline {
			words += strings.Repeat("\n", n)
		} else {
			from += n
		}
		line += strings.Count(tag, "\n")
		text = text[at[1]:]
	}
	end()
	for i, f := range all {
		all[i].text = unindent(f.text)
	}
	return all
}

// unindent returns the lines of a text without the spaces that all of them but the first have.
func unindent(text string) string {
	lines := strings.Split(text, "\n")
	least := -1
	for _, line := range lines[1:] {
		if n := len(line) - len(strings.TrimLeft(line, " \t")); strings.TrimSpace(line) != "" && (least < 0 || n < least) {
			least = n
		}
	}
	for i, line := range lines {
		lines[i] = strings.TrimRight(line[min(max(least, 0), len(line)-len(strings.TrimLeft(line, " \t"))):], " \t")
	}
	lines[0] = strings.TrimSpace(lines[0])
	return strings.Join(lines, "\n")
}

var twoWords = regexp.MustCompile(`\pL{2,}[,;:.)]? +\(?\pL{2,}`)

// isProse reports whether s has two words in a row.
func isProse(s string) bool { return twoWords.MatchString(s) }
