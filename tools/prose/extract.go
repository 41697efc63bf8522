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

// markdown returns the fragments as paragraphs, and for each line of the result
// its line in the file.
func markdown(fragments []fragment) (text string, lines []int) {
	var b strings.Builder
	for _, f := range fragments {
		n := f.line
		for line := range strings.SplitSeq(f.text, "\n") {
			b.WriteString(strings.TrimLeft(special.Replace(line), " #-=+") + "\n")
			lines = append(lines, n)
			if !f.single {
				n++
			}
		}
		b.WriteString("\n")
		lines = append(lines, n)
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
	".sh": {inFiles, lineComments("#")}, ".conf": {inFiles, lineComments("#")}, ".cfg": {inFiles, lineComments("#")},
	".service": {inFiles, lineComments("#")}, ".toml": {inFiles, lineComments("#")}, ".ini": {inFiles, lineComments("#")},
	".tpl": {inFiles, templateText}, "NOTES.txt": {inFiles, templateText},
	"Makefile": {inFiles, lineComments("#")}, "Caddyfile": {inFiles, lineComments("#")},
	"Dockerfile": {inFiles, lineComments("#")}, ".gitignore": {inFiles, lineComments("#")},
}

// scripts are shell scripts without an extension.
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
			words := strings.TrimSpace(line[m[4]:])
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
	yamlText = regexp.MustCompile(`^\s*(?:- )?(?:summary|description|title|reason|help): +(.*)$`)
	jsonText = regexp.MustCompile(`"(?:summary|description|title|text|reason|name)": *("(?:[^"\\]|\\.)*")`)
	action   = regexp.MustCompile(`(?s)\{\{.*?\}\}`)
)

// yamlTexts returns the comments and the descriptions of a YAML file.
func yamlTexts(text string) []fragment {
	all := lineComments("#")(text)
	for i, line := range strings.Split(text, "\n") {
		if m := yamlText.FindStringSubmatch(line); m != nil {
			all = append(all, fragment{line: i + 1, text: action.ReplaceAllString(strings.Trim(m[1], `"'`), "x")})
		}
	}
	return all
}

// jsonTexts returns the descriptions of a JSON file.
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
)

// pageTexts returns the text of an HTML page without its tags, then its comments
// and labels.
func pageTexts(text string) []fragment {
	var hidden []fragment
	line, end := 1, 0
	body := ""
	for _, m := range pageTag.FindAllStringIndex(text, -1) {
		line += strings.Count(text[end:m[0]], "\n")
		body += text[end:m[0]]
		tag := text[m[0]:m[1]]
		if c := pageComment.FindStringSubmatch(tag); c != nil {
			hidden = append(hidden, fragment{line: line, text: c[1]})
		} else if label := pageLabel.FindStringSubmatch(tag); label != nil {
			hidden = append(hidden, fragment{line: line, text: label[1]})
		}
		line += strings.Count(tag, "\n")
		body += strings.Repeat("\n", strings.Count(tag, "\n"))
		end = m[1]
	}
	return append([]fragment{{line: 1, text: body + text[end:]}}, hidden...)
}

var twoWords = regexp.MustCompile(`\pL{2,}[,;:.)]? +\(?\pL{2,}`)

// isProse reports whether s has two words in a row.
func isProse(s string) bool { return twoWords.MatchString(s) }
