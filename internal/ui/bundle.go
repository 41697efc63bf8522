// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// What of a module the bundler reads. Imports are on one line, by name, of neighbours;
// exports are declarations.
var (
	importLine = regexp.MustCompile(`^import \{([^{}]+)\} from '\./([a-z]+\.js)';$`)
	exportLine = regexp.MustCompile(`^export ((?:async )?function|class|const) (\w+)`)
	otherLine  = regexp.MustCompile(`^(?:import|export)\b`)

	// Of a style sheet: where a picture is that is not in it.
	address = regexp.MustCompile(`(?i)url\(\s*["']?(\w*:?)`)
)

// Script returns one script for a page that stands alone: first the plain scripts of
// [Files] that are named, then the module main with all it imports. It asks for nothing
// else, and can stand within a script element.
func Script(main string, plain ...string) (string, error) { return script(Files(), main, plain) }

// Style returns one style sheet for such a page: those of [Files] that are named, one
// after the other.
func Style(names ...string) (string, error) { return style(Files(), names) }

func script(files fs.FS, main string, plain []string) (string, error) {
	var b strings.Builder
	for _, name := range plain {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return "", fmt.Errorf("ui: %w", err)
		}
		b.Write(text)
		b.WriteString("\n")
	}
	j := joiner{files: files}
	j.out.WriteString("(() => {\n'use strict';\n")
	body, _, err := j.module("the page's own", main)
	if err != nil {
		return "", err
	}
	b.WriteString(j.out.String() + body + "})();\n")
	text := b.String()
	for _, end := range []string{"</script", "<!--"} { // it would not be read to its end
		if strings.Contains(strings.ToLower(text), end) {
			return "", fmt.Errorf("ui: a script has %q in it", end)
		}
	}
	return text, nil
}

// A joiner makes functions of modules, that return what they export. So the names that
// are a module's own stay its own.
type joiner struct {
	files fs.FS
	out   strings.Builder
	done  []string // modules that are written
	open  []string // those that are being read
}

// add writes a module behind those that it imports.
func (j *joiner) add(name string) error {
	if slices.Contains(j.done, name) {
		return nil
	}
	if slices.Contains(j.open, name) {
		return fmt.Errorf("ui: %s imports itself: %s", name, strings.Join(j.open, ", "))
	}
	text, err := fs.ReadFile(j.files, name)
	if err != nil {
		return fmt.Errorf("ui: %w", err)
	}
	j.open = append(j.open, name)
	body, exports, err := j.module(name, string(text))
	if err != nil {
		return err
	}
	j.open = j.open[:len(j.open)-1]
	fmt.Fprintf(&j.out, "const %s = (() => {\n%sreturn {%s};\n})();\n", moduleName(name), body, strings.Join(exports, ", "))
	j.done = append(j.done, name)
	return nil
}

// module returns the text of a module without imports and exports, and the names of
// what it exports. What it imports is written before.
func (j *joiner) module(name, text string) (body string, exports []string, err error) {
	var b strings.Builder
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimRight(line, "\r\n")
		if m := importLine.FindStringSubmatch(line); m != nil {
			if err := j.add(m[2]); err != nil {
				return "", nil, err
			}
			line = fmt.Sprintf("const {%s} = %s;", strings.ReplaceAll(m[1], " as ", ": "), moduleName(m[2]))
		} else if m := exportLine.FindStringSubmatch(line); m != nil {
			exports = append(exports, m[2])
			line = strings.TrimPrefix(line, "export ")
		} else if otherLine.MatchString(line) {
			return "", nil, fmt.Errorf("ui: %s:%d: %s: only import {names} from './file.js'; on one line, and export before a function, class or const, can be joined",
				name, number, line)
		}
		b.WriteString(line + "\n")
	}
	return b.String(), exports, nil
}

// moduleName is how a module is called in the script: $dom for dom.js.
func moduleName(file string) string { return "$" + strings.TrimSuffix(path.Base(file), ".js") }

func style(files fs.FS, names []string) (string, error) {
	var b strings.Builder
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return "", fmt.Errorf("ui: %w", err)
		}
		for _, never := range []string{"@import", "</style"} {
			if strings.Contains(strings.ToLower(string(text)), never) {
				return "", fmt.Errorf("ui: %s has %q in it: the page is to stand alone", name, never)
			}
		}
		for _, m := range address.FindAllSubmatch(text, -1) {
			if !strings.EqualFold(string(m[1]), "data:") {
				return "", fmt.Errorf("ui: %s has %q in it: the page is to stand alone", name, m[0])
			}
		}
		b.Write(text)
		b.WriteString("\n")
	}
	return b.String(), nil
}
