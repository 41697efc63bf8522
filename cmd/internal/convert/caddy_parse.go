// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Bounds of a Caddyfile, including its imports.
const (
	maxCaddyDepth   = 32     // nested blocks and imports
	maxCaddyLines   = 100000 // including imported lines
	maxCaddyImports = 1000   // imported files
)

// A caddyLine is a line of a Caddyfile with its optional block.
type caddyLine struct {
	words []string
	block []*caddyLine
	open  bool // the line has a block
	file  string
	line  int
}

func (l *caddyLine) where() string { return place(l.file, l.line) }

type caddyToken struct {
	text   string
	line   int
	quoted bool
}

// caddyVariable matches an environment variable with its optional default.
var caddyVariable = regexp.MustCompile(`\{\$([^}:]+)(?::([^}]*))?\}`)

func caddyTokens(file, text string) (tokens []caddyToken, err error) {
	text = caddyVariable.ReplaceAllStringFunc(text, func(found string) string {
		parts := caddyVariable.FindStringSubmatch(found)
		if value, ok := os.LookupEnv(parts[1]); ok {
			return value
		}
		return parts[2]
	})
	line := 1
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == '\n':
			line++
			i++
		case c == ' ' || c == '\t' || c == '\r':
			i++
		case c == '\\' && strings.HasPrefix(text[i:], "\\\n"): // the line goes on
			i += 2
		case c == '#':
			for i < len(text) && text[i] != '\n' {
				i++
			}
		case c == '"' || c == '`':
			start := line
			var word strings.Builder
			for i++; i < len(text) && text[i] != c; i++ {
				if c == '"' && text[i] == '\\' && i+1 < len(text) && text[i+1] == '"' {
					i++
				}
				if text[i] == '\n' {
					line++
				}
				word.WriteByte(text[i])
			}
			if i == len(text) {
				return nil, &Error{File: file, Line: start, Reason: fmt.Sprintf("a quote %c is not closed", c)}
			}
			i++
			tokens = append(tokens, caddyToken{word.String(), start, true})
		case strings.HasPrefix(text[i:], "<<"): // a heredoc
			mark, rest, _ := strings.Cut(text[i+2:], "\n")
			mark = strings.TrimSpace(mark)
			end := strings.Index(rest, mark)
			if mark == "" || end < 0 {
				return nil, &Error{File: file, Line: line, Reason: "a heredoc is not closed"}
			}
			tokens = append(tokens, caddyToken{rest[:end], line, true})
			line += 1 + strings.Count(rest[:end], "\n")
			i = len(text) - len(rest) + end + len(mark)
		default:
			start := i
			for i < len(text) && !strings.ContainsRune(" \t\r\n", rune(text[i])) {
				i++
			}
			tokens = append(tokens, caddyToken{text[start:i], line, false})
		}
	}
	return tokens, nil
}

type caddyParser struct {
	file     string
	tokens   []caddyToken
	pos      int
	shared   *caddyCounts
	snippets map[string][]*caddyLine
}

// caddyCounts holds totals over all files of a configuration.
type caddyCounts struct {
	files, lines, bytes int
	unread              []Difference
}

func parseCaddyfile(file string, data []byte) ([]*caddyLine, *caddyCounts, error) {
	tokens, err := caddyTokens(file, string(data))
	if err != nil {
		return nil, nil, err
	}
	p := &caddyParser{file: file, tokens: tokens, shared: &caddyCounts{bytes: len(data)}, snippets: map[string][]*caddyLine{}}
	lines, err := p.block(0)
	return lines, p.shared, err
}

func (p *caddyParser) fail(format string, args ...any) error {
	e := &Error{File: p.file, Reason: fmt.Sprintf(format, args...)}
	if n := len(p.tokens); n > 0 {
		e.Line = p.tokens[min(p.pos, n-1)].line
	}
	return e
}

// block reads lines until the closing brace or, at depth 0, until the end of the file.
func (p *caddyParser) block(depth int) (lines []*caddyLine, err error) {
	if depth > maxCaddyDepth {
		return nil, p.fail("more than %d nested blocks", maxCaddyDepth)
	}
	for p.pos < len(p.tokens) {
		if t := p.tokens[p.pos]; t.text == "}" && !t.quoted {
			if depth == 0 {
				return nil, p.fail("unexpected \"}\"")
			}
			p.pos++
			return lines, nil
		}
		l, err := p.readLine(depth)
		if err != nil {
			return nil, err
		}
		if p.shared.lines++; p.shared.lines > maxCaddyLines {
			return nil, p.fail("more than %d lines", maxCaddyLines)
		}
		switch {
		case depth > 0 && len(l.words) == 0:
			return nil, p.fail("unexpected \"{\"")
		case depth == 0 && len(l.words) == 1 && l.open && strings.HasPrefix(l.words[0], "(") && strings.HasSuffix(l.words[0], ")"):
			p.snippets[strings.Trim(l.words[0], "()")] = l.block
		case len(l.words) > 1 && l.words[0] == "import":
			imported, err := p.importLines(l, depth)
			if err != nil {
				return nil, err
			}
			lines = append(lines, imported...)
		default:
			lines = append(lines, l)
		}
	}
	if depth > 0 {
		return nil, p.fail("the file ends within a block: a \"}\" is missing")
	}
	return lines, nil
}

// readLine reads the words of a line and its block. A list of site addresses continues on the next line after a
// comma.
func (p *caddyParser) readLine(depth int) (*caddyLine, error) {
	l := &caddyLine{file: p.file, line: p.tokens[p.pos].line}
	last := l.line
	for p.pos < len(p.tokens) {
		t := p.tokens[p.pos]
		comma := len(l.words) > 0 && strings.HasSuffix(l.words[len(l.words)-1], ",")
		if t.line != last && !(comma && depth == 0) || t.text == "}" && !t.quoted {
			break
		}
		p.pos++
		last = t.line
		if t.text == "{" && !t.quoted {
			block, err := p.block(depth + 1)
			l.block, l.open = block, true
			return l, err
		}
		l.words = append(l.words, t.text)
	}
	return l, nil
}

// importLines returns the lines of a snippet or of files.
func (p *caddyParser) importLines(l *caddyLine, depth int) (lines []*caddyLine, err error) {
	if snippet, ok := p.snippets[l.words[1]]; ok {
		if p.shared.lines += countLines(snippet); p.shared.lines > maxCaddyLines {
			return nil, p.fail("more than %d lines", maxCaddyLines)
		}
		return expandSnippet(snippet, l.words[2:]), nil
	}
	pattern := l.words[1]
	if !filepath.IsAbs(pattern) {
		pattern = filepath.Join(filepath.Dir(p.file), pattern)
	}
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 && !strings.ContainsAny(pattern, "*?[") {
		p.shared.unread = append(p.shared.unread, Difference{l.where(), fmt.Sprintf("The import %s cannot be read.", l.words[1]),
			"Rate limits in it are missing from the policy.", "Convert on a machine that has the file."})
		return nil, nil
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, p.fail("import: %v", err)
		}
		p.shared.bytes += len(data)
		if p.shared.files++; p.shared.files > maxCaddyImports || p.shared.bytes > MaxBytes || depth >= maxCaddyDepth {
			return nil, p.fail("imports of more than %d files or %d bytes", maxCaddyImports, MaxBytes)
		}
		tokens, err := caddyTokens(file, string(data))
		if err != nil {
			return nil, err
		}
		inner := &caddyParser{file: file, tokens: tokens, shared: p.shared, snippets: p.snippets}
		block, err := inner.block(0)
		if err != nil {
			return nil, err
		}
		lines = append(lines, block...)
	}
	return lines, nil
}

// countLines counts the lines of a block including nested blocks.
func countLines(block []*caddyLine) (n int) {
	for _, l := range block {
		n += 1 + countLines(l.block)
	}
	return n
}

// expandSnippet returns a copy of a snippet with its arguments.
func expandSnippet(block []*caddyLine, args []string) (filled []*caddyLine) {
	var pairs []string
	for i, arg := range args {
		pairs = append(pairs, fmt.Sprintf("{args[%d]}", i), arg, fmt.Sprintf("{args.%d}", i), arg)
	}
	replacer := strings.NewReplacer(pairs...)
	for _, l := range block {
		line := *l
		line.words = nil
		for _, word := range l.words {
			line.words = append(line.words, replacer.Replace(word))
		}
		line.block = expandSnippet(l.block, args)
		filled = append(filled, &line)
	}
	return filled
}
