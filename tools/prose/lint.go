// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/metehq/mete/tools/internal/git"
)

type hit struct {
	path    string
	line    int
	kind    int // an index of kinds
	rule    string
	message string
}

// helpDocuments are generated from the help texts, which they quote in fenced
// blocks. Vale skips those blocks, so it also gets the text of helpText.
var helpDocuments = []string{"doc/cli.md", "doc/config.md"}

// excluded are paths that other projects or programs wrote, and Vale's rules, which quote the words that they refuse.
var excluded = regexp.MustCompile(`(^|/)(testdata|node_modules)/|(^|/)package(-lock)?\.json$|^internal/ui/files/uplot/|^tools/vale/styles/`)

var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// A source is a file with text to check.
type source struct{ path, text string }

// lint runs Vale over sources. Its rules apply to all texts.
func lint(sources []source) ([]hit, error) {
	temp, err := os.MkdirTemp("", "prose")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	var files []string
	type origin struct {
		path  string
		kind  int
		lines []int // by the line of the temporary file, from 0
	}
	origins := map[string]origin{} // by the path of the temporary file
	add := func(path string, kind int, text string, lines []int) error {
		name := filepath.Join(temp, strconv.Itoa(len(origins))+".md")
		files = append(files, name)
		origins[name] = origin{path, kind, lines}
		return os.WriteFile(name, []byte(text), 0o600)
	}
	for _, s := range sources {
		switch {
		case strings.HasSuffix(s.path, ".md"):
			files = append(files, s.path)
			if slices.Contains(helpDocuments, s.path) {
				err = add(s.path, inHelp, helpText(s.text), nil)
			}
		case strings.HasSuffix(s.path, ".go"):
			files = append(files, s.path)
			if strings.HasSuffix(s.path, "_test.go") {
				continue
			}
			var found []fragment
			if found, err = goStrings(s.text); err == nil && len(found) > 0 {
				text, lines := markdown(found)
				err = add(s.path, inStrings, text, lines)
			}
		default:
			kind, found := extract(s.path, s.text)
			text, lines := markdown(found)
			err = add(s.path, kind, text, lines)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.path, err)
		}
	}
	hits, err := vale(files)
	if err != nil {
		return nil, err
	}
	for i := range hits {
		h := &hits[i]
		o, isExtracted := origins[h.path]
		switch {
		case isExtracted:
			h.path, h.kind = o.path, o.kind
			if o.lines != nil {
				h.line = o.lines[h.line-1]
			}
		case strings.HasSuffix(h.path, "_test.go"):
			h.kind = inTests
		case strings.HasSuffix(h.path, ".go"):
			h.kind = inComments
		}
	}
	slices.SortFunc(hits, func(a, b hit) int {
		return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.line, b.line), cmp.Compare(a.rule, b.rule))
	})
	return hits, nil
}

// readSources reads the files under paths that have text to check. It skips files that git ignores.
func readSources(paths ...string) ([]source, error) {
	args := append([]string{"ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate", "--"}, paths...)
	out, err := git.Run(".", args...)
	if err != nil {
		return nil, err
	}
	var all []source
	for name := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		if !isChecked(name) {
			continue
		}
		text, err := os.ReadFile(name)
		if os.IsNotExist(err) { // deleted, but still in the index
			continue
		}
		if err != nil {
			return nil, err
		}
		if !generated.Match(text) {
			all = append(all, source{name, string(text)})
		}
	}
	return all, nil
}

// isChecked reports whether a file has texts to check.
func isChecked(name string) bool {
	ext := filepath.Ext(name)
	return (ext == ".md" || ext == ".go" || isExtracted(name)) && !excluded.MatchString(name)
}

// vale returns the hits in files, all of kind inDocs.
func vale(files []string) ([]hit, error) {
	args := append([]string{"tool", "vale", "--config=.vale.ini", "--no-global", "--no-exit", "--output=JSON"}, files...)
	cmd := exec.Command("go", args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go tool vale: %w\n%s%s", err, out, stderr.Bytes())
	}
	var alerts map[string][]struct {
		Check, Message string
		Line           int
	}
	if err := json.Unmarshal(out, &alerts); err != nil {
		return nil, fmt.Errorf("go tool vale: %w in %.200q", err, out)
	}
	var hits []hit
	for path, found := range alerts {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		lines := strings.Split(string(text), "\n")
		for _, a := range found {
			h := hit{path: path, line: a.Line, rule: strings.TrimPrefix(a.Check, "mete."), message: a.Message}
			if h.rule == "SentenceLength" && isTrailingComment(path, lines[a.Line-1]) {
				continue // Vale joins the trailing comments of consecutive lines.
			}
			if isExampleOutput(path, lines, a.Line-1) {
				continue
			}
			hits = append(hits, h)
		}
	}
	return hits, nil
}

// isTrailingComment reports whether a line of a Go file has code before its comment.
func isTrailingComment(path, line string) bool {
	return strings.HasSuffix(path, ".go") && strings.Contains(line, " //") && !strings.HasPrefix(strings.TrimSpace(line), "//")
}

var exampleOutput = regexp.MustCompile(`^\s*// (?:Unordered output|Output):`)

// isExampleOutput reports whether lines[i] belongs to the output of an example, which a program writes.
func isExampleOutput(path string, lines []string, i int) bool {
	if !strings.HasSuffix(path, "_test.go") {
		return false
	}
	for ; i >= 0 && strings.HasPrefix(strings.TrimSpace(lines[i]), "//"); i-- {
		if exampleOutput.MatchString(lines[i]) {
			return true
		}
	}
	return false
}
