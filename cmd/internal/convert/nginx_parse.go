// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Bounds of an nginx configuration, including its included files.
const (
	maxNginxDepth      = 32   // nested blocks and includes
	maxNginxDirectives = 1e6  // total directives
	maxNginxIncludes   = 1000 // included files
)

// A directive is a directive of an nginx configuration with its optional block.
type directive struct {
	name  string
	args  []string
	block []*directive
	file  string
	line  int
}

func (d *directive) where() string { return place(d.file, d.line) }

// text returns the directive without its block.
func (d *directive) text() string { return strings.Join(append([]string{d.name}, d.args...), " ") }

func find(block []*directive, name string) (found []*directive) {
	for _, d := range block {
		if d.name == name {
			found = append(found, d)
		}
	}
	return found
}

// A nginxParser reads the tokens of one file. Parsers of included files share its counts.
type nginxParser struct {
	file   string
	data   string
	pos    int
	line   int
	shared *nginxCounts
}

// nginxCounts holds totals over all files of a configuration.
type nginxCounts struct {
	root       string // base directory of relative includes
	directives int
	bytes      int
	files      []string // included files
	unread     []Difference
}

func parseNginx(file string, data []byte) ([]*directive, *nginxCounts, error) {
	shared := &nginxCounts{root: filepath.Dir(file), bytes: len(data)}
	p := &nginxParser{file: file, data: string(data), line: 1, shared: shared}
	block, err := p.block(0)
	return block, shared, err
}

func (p *nginxParser) fail(format string, args ...any) error {
	return &Error{File: p.file, Line: p.line, Reason: fmt.Sprintf(format, args...)}
}

// block reads directives until the closing brace or, at depth 0, until the end of the file.
func (p *nginxParser) block(depth int) (block []*directive, err error) {
	if depth > maxNginxDepth {
		return nil, p.fail("more than %d nested blocks", maxNginxDepth)
	}
	for {
		words, line, end, err := p.words()
		switch {
		case err != nil:
			return nil, err
		case end == 0 && depth > 0:
			return nil, p.fail("the file ends within a block: a \"}\" is missing")
		case end == 0 && len(words) == 0:
			return block, nil
		case end == 0:
			return nil, p.fail("the file ends within %q: a \";\" is missing", words[0])
		case end == '}' && len(words) > 0:
			return nil, p.fail("unexpected \"}\": %q has no \";\"", words[0])
		case end == '}' && depth == 0:
			return nil, p.fail("unexpected \"}\"")
		case end == '}':
			return block, nil
		case len(words) == 0:
			return nil, p.fail("unexpected %q", end)
		}
		if p.shared.directives++; p.shared.directives > maxNginxDirectives {
			return nil, p.fail("more than %d directives", int(maxNginxDirectives))
		}
		d := &directive{name: words[0], args: words[1:], file: p.file, line: line}
		switch {
		case end == '{' && strings.HasSuffix(d.name, "_by_lua_block"):
			err = p.skipLua()
		case end == '{':
			d.block, err = p.block(depth + 1)
		case d.name == "include" && len(d.args) == 1:
			d.block, err = p.include(d.args[0])
			block = append(block, d.block...)
			if err == nil {
				continue
			}
		}
		if err != nil {
			return nil, err
		}
		block = append(block, d)
	}
}

// words reads the words of a directive. It returns their first line and the delimiter: ; { } or 0 at the end of
// the file.
func (p *nginxParser) words() (words []string, line int, end byte, err error) {
	line = p.line
	for p.pos < len(p.data) {
		switch c := p.data[p.pos]; c {
		case '\n', ' ', '\t', '\r':
			p.advance()
		case '#':
			for p.pos < len(p.data) && p.data[p.pos] != '\n' {
				p.advance()
			}
		case ';', '{', '}':
			p.advance()
			return words, line, c, nil
		default:
			if len(words) == 0 {
				line = p.line
			}
			word, err := p.word()
			if err != nil {
				return nil, 0, 0, err
			}
			words = append(words, word)
		}
	}
	return words, line, 0, nil
}

func (p *nginxParser) advance() {
	if p.data[p.pos] == '\n' {
		p.line++
	}
	p.pos++
}

func (p *nginxParser) word() (string, error) {
	var word strings.Builder
	quote, line := p.data[p.pos], p.line
	if quote != '"' && quote != '\'' {
		quote = 0
	} else {
		p.advance()
	}
	for variable := false; p.pos < len(p.data); p.advance() {
		c := p.data[p.pos]
		switch {
		case c == '\\' && p.pos+1 < len(p.data):
			// A backslash escapes quotes and is literal before other characters.
			if next := p.data[p.pos+1]; next != '"' && next != '\'' && next != '\\' {
				word.WriteByte(c)
			}
			p.advance()
			word.WriteByte(p.data[p.pos])
			variable = false
			continue
		case quote != 0 && c == quote:
			p.advance()
			return word.String(), nil
		case quote == 0 && strings.IndexByte(" \t\r\n;", c) >= 0, quote == 0 && c == '{' && !variable:
			return word.String(), nil
		}
		variable = c == '$'
		word.WriteByte(c)
	}
	if quote != 0 {
		return "", &Error{File: p.file, Line: line, Reason: fmt.Sprintf("a quote %c is not closed", quote)}
	}
	return word.String(), nil
}

// skipLua skips a block of Lua. Its braces are balanced except in strings.
func (p *nginxParser) skipLua() error {
	for depth := 1; p.pos < len(p.data); p.advance() {
		switch p.data[p.pos] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				p.advance()
				return nil
			}
		}
	}
	return p.fail("the file ends within a block of Lua")
}

// include parses the files of a pattern. An unreadable file is only a difference, because users often convert on
// another machine.
func (p *nginxParser) include(pattern string) (block []*directive, err error) {
	path := pattern
	if !filepath.IsAbs(path) {
		path = filepath.Join(p.shared.root, path)
	}
	files, err := filepath.Glob(path)
	if err == nil && len(files) == 0 && !strings.ContainsAny(pattern, "*?[") {
		files = []string{path}
	}
	for _, file := range files {
		if len(p.shared.files) >= maxNginxIncludes {
			return nil, p.fail("more than %d included files", maxNginxIncludes)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			p.shared.unread = append(p.shared.unread, Difference{place(p.file, p.line),
				fmt.Sprintf("The included file %s cannot be read.", pattern), "Rate limits in that file are missing from the policy.",
				"Convert on a machine that has the file."})
			continue
		}
		if p.shared.bytes += len(data); p.shared.bytes > MaxBytes {
			return nil, p.fail("the configuration has more than %d bytes", MaxBytes)
		}
		p.shared.files = append(p.shared.files, file)
		included := &nginxParser{file: file, data: string(data), line: 1, shared: p.shared}
		inner, err := included.block(0)
		if err != nil {
			return nil, err
		}
		block = append(block, inner...)
	}
	return slices.Clip(block), nil
}
