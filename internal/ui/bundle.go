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

// The statements that the bundler understands: imports by name of files in the same directory, each on one line, and
// exports of declarations.
var (
	importLine = regexp.MustCompile(`^import \{([^{}]+)\} from '\./([a-z]+\.js)';$`)
	exportLine = regexp.MustCompile(`^export ((?:async )?function|class|const) (\w+)`)
	otherLine  = regexp.MustCompile(`^(?:import|export)\b`)

	// address matches the scheme of a URL in a style sheet.
	address = regexp.MustCompile(`(?i)url\(\s*["']?(\w*:?)`)
)

// Script returns one script for a self-contained page: the plain scripts from [Files], and then the module main with
// its imports. The script loads nothing else and is safe inside a script element.
func Script(main string, plain ...string) (string, error) { return script(Files(), main, plain) }

// Style returns one style sheet for a self-contained page: the named files of [Files], joined.
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
	for _, end := range []string{"</script", "<!--"} { // either would end the script element early
		if strings.Contains(strings.ToLower(text), end) {
			return "", fmt.Errorf("ui: a script contains %q", end)
		}
	}
	return text, nil
}

// A joiner turns each module into a function that returns its exports, so that other names stay private.
type joiner struct {
	files fs.FS
	out   strings.Builder
	done  []string // modules written
	open  []string // modules being read, to detect import cycles
}

// add writes a module after its imports.
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

// module writes the imports of a module. It returns the text without import and export statements, and the exported
// names.
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
			return "", nil, fmt.Errorf("ui: %s:%d: %s: the bundler supports only import {names} from './file.js'; on one line, and export before a function, class or const",
				name, number, line)
		}
		b.WriteString(line + "\n")
	}
	return b.String(), exports, nil
}

// moduleName returns the name of a module in the script, such as $dom for dom.js.
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
				return "", fmt.Errorf("ui: %s contains %q, but the page must be self-contained", name, never)
			}
		}
		for _, m := range address.FindAllSubmatch(text, -1) {
			if !strings.EqualFold(string(m[1]), "data:") {
				return "", fmt.Errorf("ui: %s contains %q, but the page must be self-contained", name, m[0])
			}
		}
		b.Write(text)
		b.WriteString("\n")
	}
	return b.String(), nil
}
