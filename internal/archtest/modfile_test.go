// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"path"
	"strings"
)

// parseModule reads the directives of a valid go.mod file.
func parseModule(text string) *module {
	m := new(module)
	for _, d := range directives(text) {
		switch d[0] {
		case "module":
			m.path = d[1]
		case "go":
			m.version = d[1]
		case "require":
			m.requires = append(m.requires, d[1])
		case "replace":
			m.replaces = append(m.replaces, d[1])
		}
	}
	return m
}

// parseWork reads a go.work file.
func parseWork(text string) workfile {
	var w workfile
	for _, d := range directives(text) {
		switch d[0] {
		case "go":
			w.version = d[1]
		case "use":
			w.uses = append(w.uses, path.Clean(d[1]))
		}
	}
	return w
}

// directives returns the lines of a go.mod or go.work file as at least two words. Lines of a block start with
// the word of the block.
func directives(text string) [][]string {
	var all [][]string
	block := ""
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "//")
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case words[0] == ")":
			block = ""
		case len(words) == 2 && words[1] == "(":
			block = words[0]
		case block != "":
			all = append(all, append([]string{block}, words...))
		case len(words) > 1:
			all = append(all, words)
		}
	}
	return all
}
